"""What came of an operator's intent, on trimtab.rounds and in Redis."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from trimtab.wire.intent import IntentKind


class IntentState(StrEnum):
    """How far an intent has come; all but ``accepted`` are final."""

    REFUSED = "refused"
    """It broke a rule, and has no effect."""
    ACCEPTED = "accepted"
    """It is valid, and its effect is still to come."""
    DONE = "done"
    EXPIRED = "expired"
    """Its effect did not come in time, and the job waits for it no longer."""


class IntentOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of one intent. ``at`` is the batch timestamp (epoch ms). A later outcome with the
    same id replaces it."""

    cluster: str
    id: str
    kind: IntentKind
    state: IntentState
    at: int
    rule: str = ""
    """Why it was refused: a `trimtab.intent_rules.IntentRule`, or the `Rule` of the round."""
    problems: tuple[str, ...] = ()
    """Everything that is wrong with the intent, or why it expired."""
    asked: int = 0
    """The fingerprint of what the intent asked for (`trimtab.wire.intent.fingerprint`). It shows
    whether an intent with the same id asked for something else, as that one gets no outcome of its
    own. 0: not known."""
    v: int = 1

    def of(self, asked: int) -> IntentOutcome:
        """The outcome of an intent with this fingerprint."""
        return msgspec.structs.replace(self, asked=asked)

    @property
    def final(self) -> bool:
        """Whether nothing more will come of the intent."""
        return self.state is not IntentState.ACCEPTED
