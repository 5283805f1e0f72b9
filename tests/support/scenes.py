"""Rounds on views, kept as `trimtab.explaining` wants them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from tests.support.pulsar import PULSAR
from trimtab.explaining.scene import Scene
from trimtab.health.assessment import situation_of
from trimtab.round.decide import decide
from trimtab.settings import Settings
from trimtab.shedding import DEFAULTS
from trimtab.state.memory import Memory
from trimtab.view import View

MINUTE_MS = 60_000


def scene_of(
    view: View,
    settings: Mapping[str, object] | Settings = MappingProxyType({}),
    memory: Memory | None = None,
) -> Scene:
    """One round on a view, at the view's time; as Pulsar does it unless told otherwise."""
    if not isinstance(settings, Settings):
        settings = DEFAULTS.changed({**PULSAR, **settings})
    memory = memory or Memory()
    found = situation_of(memory, view.records, settings, view.now_ms)
    view = replace(view, trouble=replace(found.trouble, needs=view.trouble.needs))
    state = replace(memory.round, paused=memory.paused)
    plan, after = decide(view, state, settings, view.now_ms, state.draws(view.cluster))
    return Scene(view, memory, plan, after, settings, found)


def scenes_of(
    views: list[View], settings: Mapping[str, object] | Settings = MappingProxyType({})
) -> list[Scene]:
    """Rounds one after another, a minute apart; nothing that they want happens."""
    memory, held = Memory(), []
    for number, view in enumerate(views):
        at = number * MINUTE_MS
        brokers = replace(view.brokers, reported_ms=view.brokers.reported_ms + at)
        view = replace(view, brokers=brokers, now_ms=view.now_ms + at)
        scene = scene_of(view, settings, memory)
        held.append(scene)
        memory = replace(memory, round=scene.after)
    return held
