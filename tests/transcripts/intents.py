"""Intents as a story says them: ``drain a``, ``settings round.max_moves 1``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from trimtab.wire.intent import Intent, IntentKind

_MEMBERS: Final[Mapping[IntentKind, tuple[str, ...]]] = MappingProxyType(
    {
        IntentKind.BROKER_LOST: ("broker",),
        IntentKind.BROKER_JOINED: ("broker",),
        IntentKind.DRAIN: ("broker",),
        IntentKind.UNDRAIN: ("broker",),
        IntentKind.ANTI_AFFINITY: ("name", "group"),
    }
)
"""What the words after an intent's kind are; of others there are none."""


def parse_intent(cluster: str, words: Sequence[str]) -> Intent:
    """Raises ValueError where the words say no intent."""
    kind = IntentKind(words[0])
    said: dict[str, object] = {"id": " ".join(words), "kind": kind, "cluster": cluster}
    if kind is IntentKind.SETTINGS:
        said["settings"] = {words[1]: parse_value(words[2])}
    else:
        said |= zip(_MEMBERS.get(kind, ()), words[1:], strict=True)
    return msgspec.convert(said, Intent)


def parse_value(word: str) -> str | int | float | bool:
    """Of a setting."""
    try:
        return msgspec.json.decode(word, type=bool | int | float)
    except msgspec.DecodeError:
        return word
