"""An operator's intents for the job: made, and checked against the last rounds."""

from __future__ import annotations

import getpass
import time
from collections.abc import Collection, Iterator, Sequence
from typing import Final
from uuid import uuid4

import msgspec

from control.config_import.pulsar_keys import NOT_IMPORTED
from control.rounds import ClusterRounds
from sinks.errors import SinkError
from trimtab.cluster.intents.existing import Existing, absences
from trimtab.cluster.intents.flaws import intent_flaws
from trimtab.explaining.shortages import estimate_left, say_left
from trimtab.intent_rules import Flaw, IntentRule
from trimtab.nearby import nearby
from trimtab.policies import host_of, matches
from trimtab.reasons import Rule
from trimtab.settings import Settings
from trimtab.state.memory import Memory
from trimtab.wire.intent import Intent, IntentKind

_STOPPED_BY_A_PAUSE: Final = frozenset(
    {
        IntentKind.UNLOAD,
        IntentKind.SPLIT,
        IntentKind.MERGE,
        IntentKind.DRAIN,
        IntentKind.APPROVE,
        IntentKind.UNDO,
    }
)
"""What rounds carry out, and none does in a pause."""


class Objections(ValueError):
    """Raised if the job would refuse an intent; ``flaws`` lists all that is wrong with it."""

    def __init__(self, flaws: Sequence[Flaw]) -> None:
        super().__init__("; ".join(problem for _, problem in flaws))
        self.flaws = flaws

    @property
    def problems(self) -> list[str]:
        return [problem for _, problem in self.flaws]


def new_intent(kind: IntentKind, cluster: str, own_id: str = "", /, **members: object) -> Intent:
    """An intent of this kind, with that id or a new one."""
    said = Intent(
        id=own_id or f"tell/{uuid4()}",
        kind=kind,
        cluster=cluster,
        at=time.time_ns() // 1_000_000,
        by=getpass.getuser(),
    )
    return msgspec.structs.replace(said, **members)


def object_to(
    intent: Intent, last: ClusterRounds, memory: Memory, existing: Existing
) -> Iterator[Flaw]:
    """What the job would find wrong with an intent; ``memory`` has the cluster's policies and
    changed settings, as `remember` reads them."""
    if intent.kind in {IntentKind.SETTINGS, IntentKind.RESET} and last.started is None:
        problem = "trimtab.rounds no longer says what the job was started with"
        yield IntentRule.INVALID_SETTING, problem
        return
    if last.newest.policies is not None or not _deletes_policy(intent):
        yield from intent_flaws(memory, intent, last.defaults(), intent.at)
    for name in (*intent.settings, *intent.names):
        if name in NOT_IMPORTED:
            problem = f"{name}: this key of Pulsar has no setting here: {NOT_IMPORTED[name]}"
            yield IntentRule.INVALID_SETTING, problem
    yield from absences(intent, existing)


def note(intent: Intent, last: ClusterRounds, memory: Memory, existing: Existing) -> Iterator[str]:
    """Warnings: a name that is not known yet, a setting without which the intent has no effect, a
    drain that leaves too little."""
    settings = last.defaults().with_valid(memory.overrides)
    if last.regular.skipped == Rule.PAUSED and intent.kind in _STOPPED_BY_A_PAUSE:
        yield (
            "note: the cluster is paused, and this waits until it is resumed: "
            f"trimtab resume --cluster {intent.cluster} --execute"
        )
    match intent.kind:
        case IntentKind.DRAIN:
            yield from _drain_notes(intent, last, settings)
        case IntentKind.DRAIN_PLAN | IntentKind.RESTART_PLAN:
            yield f"note: it waits for approval: trimtab plans list --cluster {intent.cluster}"
        case IntentKind.FAILURE_DOMAIN:
            yield from _domain_notes(intent, last, settings)
        case IntentKind.ISOLATION | IntentKind.ANTI_AFFINITY if not _deletes_policy(intent):
            try:
                yield from _namespace_notes(intent, last, existing.namespaces())
            except SinkError as error:
                yield f"note: whether there are such namespaces is unknown: {error}"


def _drain_notes(intent: Intent, last: ClusterRounds, settings: Settings) -> Iterator[str]:
    draining = {intent.broker, *last.newest.draining}
    left = estimate_left(last.newest.usage, {*draining, *last.newest.held_back})
    problem = say_left(draining, *left, settings)
    if last.newest.usage and problem:
        yield f"note: {problem}"


def _domain_notes(intent: Intent, last: ClusterRounds, settings: Settings) -> Iterator[str]:
    if intent.brokers and not settings.placement.failure_domains:
        yield (
            "note: anti-affinity groups do not spread over failure domains while "
            f"placement.failure_domains is off; {_set(intent, 'placement.failure_domains')}"
        )
    for broker in intent.brokers:
        if broker not in last.brokers:
            yield f"note: {broker} is no broker lately; {nearby(broker, last.brokers)}"


def _namespace_notes(
    intent: Intent, last: ClusterRounds, namespaces: Collection[str]
) -> Iterator[str]:
    policy = intent.isolation
    if policy is None:
        if intent.name not in namespaces:
            near = nearby(intent.name, namespaces)
            yield f"note: {intent.name} is no namespace that has bundles now; {near}"
        return
    if not any(matches(host_of(broker), policy.primary) for broker in last.brokers):
        yield f"note: no broker lately matches {', '.join(policy.primary)}"
    if not any(matches(each, policy.namespaces) for each in namespaces):
        yield f"note: no namespace that has bundles now matches {', '.join(policy.namespaces)}"


def _set(intent: Intent, name: str) -> str:
    return f"type: trimtab config set {name}=true --cluster {intent.cluster} --execute"


def _deletes_policy(intent: Intent) -> bool:
    """Whether only the job knows if what the intent deletes exists."""
    match intent.kind:
        case IntentKind.ISOLATION:
            return intent.isolation is None
        case IntentKind.ANTI_AFFINITY:
            return not intent.group
        case IntentKind.FAILURE_DOMAIN:
            return not intent.brokers
    return False
