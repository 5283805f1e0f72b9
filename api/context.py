"""What all paths share: the control plane, the default cluster, and sending an intent."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Final

from fastapi import Depends, Request

from agent.lookup.server import Lookup
from api.audit_log import reason_of
from api.refusal import RefusedRequest, status_of
from control.intents import new_intent
from control.next_command import command
from control.plane import ControlPlane
from control.rounds import ClusterRounds
from trimtab.intent_rules import IntentRule
from trimtab.state.memory import Memory
from trimtab.wire.intent import Intent, IntentKind, fingerprint
from trimtab.wire.intent_outcome import IntentOutcome, IntentState

PATIENCE_S: Final = 60.0
"""How long a request waits for its outcome: Pulsar's namespaceBundleUnloadingTimeoutMs."""

ID_HEADER: Final = "idempotency-key"
"""The caller's own id of a request, as in the IETF's draft of that name."""


@dataclass(frozen=True, slots=True)
class Context:
    """The control plane and the default cluster, for one request also who sends it and why. Any
    number of threads may use it."""

    plane: ControlPlane
    name: str = ""
    """The default cluster, for Pulsar's paths, which name none; empty: the only one that exists."""
    patience_s: float = PATIENCE_S
    by: str = "api"
    """Who sends the request."""
    reason: str = ""
    """Why, in the caller's words."""
    own_id: str = ""
    """The caller's name for the request: another with it is the same request."""
    intents: list[Intent] = field(default_factory=list)
    """The intents that the request became."""

    def cluster(self) -> ClusterRounds:
        """The last rounds of the default cluster."""
        if self.name:
            return self.plane.cluster(self.name)
        clusters = self.plane.clusters()
        if len(clusters) == 1:
            return next(iter(clusters.values()))
        if not clusters:
            reason = "no round of any cluster is recorded: start a job (trimtab job)"
            raise RefusedRequest(503, reason)
        named = ", ".join(sorted(clusters))
        raise RefusedRequest(412, f"there are {named}: start trimtab api with --cluster NAME")

    def memory(self) -> tuple[ClusterRounds, Memory]:
        """The default cluster, with its policies and changed settings as of now."""
        last = self.cluster()
        return last, self.plane.memory(last)

    def lookup(self) -> Lookup:
        """Answers lookups of the default cluster's topics."""
        return self.plane.lookup(self.cluster().newest.cluster)

    def ask(
        self, kind: IntentKind, cluster: str = "", /, of: str = "", **members: object
    ) -> Intent:
        """Send the job an intent; ``of`` names it where a request becomes several. Raises
        Objections if the job would refuse it."""
        name = cluster or self.cluster().newest.cluster
        intent = self.new_intent(kind, name, of, **members)
        self.plane.check(intent)
        self.send(intent)
        return intent

    def new_intent(
        self, kind: IntentKind, cluster: str, of: str = "", /, **members: object
    ) -> Intent:
        """An intent with who sends the request, why, and the caller's id of it."""
        said = {"reason": self.reason, **({"by": self.by} if self.by else {})}
        own_id = f"{self.own_id}/{of}" if self.own_id and of else self.own_id
        return new_intent(kind, cluster, own_id, **members, **said)

    def send(self, intent: Intent) -> None:
        """Send an intent, and note it for the answer and the audit log; raises RefusedRequest if
        its id is another's."""
        if self.own_id:
            _refuse_another(intent, self.plane.outcome(intent.cluster, intent.id))
        self.intents.append(intent)
        self.plane.send(intent)

    def tell(self, kind: IntentKind, cluster: str = "", /, **members: object) -> IntentState:
        """Have the job carry out an intent, and wait for its outcome. Raises RefusedRequest unless
        it is done."""
        intent = self.ask(kind, cluster, "", **members)
        return self.await_done(intent, self.patience_s)

    def await_done(self, intent: Intent, wait_s: float) -> IntentState:
        """Wait until an intent that was sent is done; raises RefusedRequest unless it is."""
        found = self.plane.outcome(intent.cluster, intent.id, wait_s)
        if found is None:
            later = command("outcome", intent.id, "--cluster", intent.cluster)
            reason = (
                f"no job has read {intent.id} for {wait_s:g} s; is one running? It stands, and the "
                f"next job carries it out: {later}"
            )
            raise RefusedRequest(503, reason)
        _refuse_another(intent, found)
        problems = "; ".join(found.problems)
        if found.state is IntentState.REFUSED:
            raise RefusedRequest(status_of(found.rule), problems, found.rule)
        if found.state is IntentState.EXPIRED:
            raise RefusedRequest(500, problems, found.rule)
        if not found.final:
            reason = f"{intent.id} is accepted, and not done after {wait_s:g} s"
            raise RefusedRequest(504, reason)
        return found.state


def _refuse_another(intent: Intent, found: IntentOutcome | None) -> None:
    """Raise RefusedRequest if the outcome is that of another intent with the same id."""
    if found is not None and found.asked not in (0, fingerprint(intent)):
        reason = f"id: {intent.id} was used for something else ({found.kind}): give a new one"
        raise RefusedRequest(status_of(IntentRule.ID_IN_USE), reason, IntentRule.ID_IN_USE)


def _context(request: Request) -> Context:
    context: Context = request.app.state.context
    request.state.intents = []
    own_id = request.headers.get(ID_HEADER, "")
    if not (own_id.isascii() and own_id.isprintable()):
        raise RefusedRequest(400, "id: only ASCII characters that can be printed: give another")
    return replace(
        context,
        by=request.state.caller.name,
        reason=reason_of(request),
        own_id=own_id,
        intents=request.state.intents,
    )


InContext = Annotated[Context, Depends(_context)]
"""Annotates a path's parameter: the context of its request."""
