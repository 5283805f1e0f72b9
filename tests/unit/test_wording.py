"""Every intent of an operator is said in words."""

from __future__ import annotations

from control.wording import WORDS
from trimtab.wire.intent import OF_THE_WATCHER, IntentKind


def test_every_intent_of_an_operator_has_its_words() -> None:
    """Without them a dry run fails, and no other test said so."""
    assert WORDS.keys() == {*IntentKind} - OF_THE_WATCHER, "control/wording.py: WORDS"
