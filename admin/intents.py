"""An operator's intents for the job: made, checked against the last rounds, and published."""

from __future__ import annotations

import getpass
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from uuid import uuid4

import msgspec
import typer

from admin.config_import.pulsar_keys import NOT_IMPORTED
from admin.ending import USAGE, end, end_unserved
from admin.last_rounds import (
    LastRounds,
    NoSuchCluster,
    find_cluster,
    read_policies,
    read_rounds,
)
from admin.outcome_command import end_by, find_outcome
from simulation.replay.recorded import Missing, RecordedTopics
from sinks.errors import SinkError
from sinks.kafka.publisher import Outgoing, Publisher
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.server.connections import redis_client
from streaming.config import InvalidConfig, JobConfig, load_config
from trimtab.cluster.existing import Existing, absences
from trimtab.cluster.flaws import POLICIES, intent_flaws
from trimtab.cluster.job_settings import from_record
from trimtab.explaining.shortages import estimate_left, say_left
from trimtab.model import namespace_of
from trimtab.nearby import nearby
from trimtab.policies import NO_POLICIES, host_of, matches
from trimtab.settings import Settings
from trimtab.settings.setting import InvalidSettings
from trimtab.shedding import DEFAULTS
from trimtab.state.memory import Memory
from trimtab.wire.control import Intent, IntentKind
from trimtab.wire.keys import CONTROL
from trimtab.wire.ownership import Record
from trimtab.wire.rounds import JobSettings

Records = Callable[[], Mapping[str, Record]]
"""Reads the store's records of a cluster, by bundle."""


class Objections(ValueError):
    """Raised if the job would refuse an intent; ``problems`` lists all that is wrong with it."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class Word(StrEnum):
    """The intents that need only a word and a subject."""

    PAUSE = "pause"
    RESUME = "resume"
    DRAIN = "drain"
    UNDRAIN = "undrain"
    READMIT = "readmit"


_SUBJECTS = {Word.DRAIN: "broker", Word.UNDRAIN: "broker", Word.READMIT: "bundle"}


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


def intent_of(word: Word, cluster: str, subject: str | None, name: str = "") -> Intent:
    """Make an intent; raises ValueError if the subject is missing, or not expected."""
    member = _SUBJECTS.get(word)
    if member is not None and subject is None:
        raise ValueError(f"{word}: say which {member}")
    if member is None and subject is not None:
        raise ValueError(f"{word} is about the whole cluster, not about {subject}")
    members = {} if member is None else {member: subject}
    return new_intent(IntentKind(word.value), cluster, name, **members)


def publish(publisher: Publisher, intent: Intent) -> None:
    """Return once Kafka has it; raises KafkaUnavailable and Misconfigured."""
    publisher.publish([Outgoing(CONTROL, intent.cluster, msgspec.json.encode(intent))])


def send(intent: Intent, config: Path | None, *, unchecked: bool, wait_s: float = 0.0) -> None:
    """Publish an intent and print its id, or end the program with all that is wrong with it; with
    ``wait_s`` wait for its outcome, and end by that."""
    try:
        settings = load_config(config)
        if not unchecked:
            _check(intent, settings)
        publish(Publisher(settings.kafka.bootstrap, settings.kafka.client), intent)
    except (InvalidConfig, Objections) as error:
        raise end("\n".join(error.problems), USAGE) from None
    except SinkError as error:
        raise end_unserved(error, config) from None
    print(intent.id, flush=True)
    if wait_s:
        try:
            url = settings.redis_url.get_secret_value()
            found = find_outcome(url, intent.cluster, intent.id, wait_s)
        except SinkError as error:
            raise end_unserved(error, config) from None
        end_by(found, intent.cluster, intent.id)
        typer.echo("done", err=True)


def last_rounds(
    settings: JobConfig, cluster: str, *, with_policies: bool = False
) -> tuple[LastRounds, JobSettings | None]:
    """A cluster's last rounds, and what their job was started with, if that is still recorded.

    With ``with_policies``, they know what intents did to policies since.
    Raises SinkError, and Objections if the cluster is unknown.
    """
    with closing(RecordedTopics(settings.kafka.bootstrap, settings.kafka.client)) as topics:
        try:
            clusters, started = read_rounds(topics)
            last = find_cluster(clusters, cluster)
            if with_policies:
                last.policies = read_policies(topics, cluster, last)
        except (NoSuchCluster, Missing) as error:
            raise Objections([str(error)]) from None
    return last, started.get(last.query)


def _check(intent: Intent, settings: JobConfig) -> None:
    """Raise Objections with all that the job would find wrong; warn of what has no effect now."""
    try:
        last, started = last_rounds(settings, intent.cluster, with_policies=intent.kind in POLICIES)
        url = settings.redis_url.get_secret_value()
        read = cache(partial(_records, url, intent.cluster))
        problems = list(flaws(intent, last, started, read))
    except (Objections, InvalidSettings) as error:
        problems = error.problems
    if problems:
        raise Objections([*problems, "nothing was sent; --unchecked sends it all the same"])
    for note in notes(intent, last, started, read):
        typer.echo(note, err=True)


def _records(url: str, cluster: str) -> Mapping[str, Record]:
    """The store's records of the cluster, by bundle."""
    with redis_client(url) as client:
        return OwnershipStore(client).records(cluster)


def flaws(
    intent: Intent,
    last: LastRounds,
    started: JobSettings | None,
    records: Records,
) -> Iterator[str]:
    """What the job would find wrong with an intent, as far as rounds and records say.

    ``records`` reads those of the cluster, by bundle; it is called only if they are needed.
    """
    if intent.kind in {IntentKind.SETTINGS, IntentKind.RESET} and started is None:
        yield "trimtab.rounds no longer says what the job was started with"
        return
    defaults = DEFAULTS if started is None else from_record(started)[1]
    if last.policies is not None or not _deletes_policy(intent):
        memory = Memory(overrides=dict(last.overrides), policies=last.policies or NO_POLICIES)
        yield from (text for _, text in intent_flaws(memory, intent, defaults))
    for name in (*intent.settings, *intent.names):
        if name in NOT_IMPORTED:
            yield f"{name}: this key of Pulsar has no setting here: {NOT_IMPORTED[name]}"
    existing = Existing(
        brokers=lambda: last.brokers,
        namespaces=lambda: _namespaces(records),
        records=lambda name: {b: each for b, each in records().items() if namespace_of(b) == name},
    )
    yield from (text for _, text in absences(intent, existing))


def notes(
    intent: Intent, last: LastRounds, started: JobSettings | None, records: Records
) -> Iterator[str]:
    """What an intent names and is absent for now, a setting without which it has no effect, and a
    drain that leaves too little; ``records`` as in `flaws`."""
    defaults = DEFAULTS if started is None else from_record(started)[1]
    settings = defaults.with_valid(last.overrides)
    match intent.kind:
        case IntentKind.DRAIN:
            yield from _drain_notes(intent, last, settings)
        case IntentKind.FAILURE_DOMAIN:
            yield from _domain_notes(intent, last, settings)
        case IntentKind.ISOLATION | IntentKind.ANTI_AFFINITY if not _deletes_policy(intent):
            try:
                yield from _namespace_notes(intent, last, _namespaces(records))
            except SinkError as error:
                yield f"note: whether there are such namespaces is unknown: {error}"


def _drain_notes(intent: Intent, last: LastRounds, settings: Settings) -> Iterator[str]:
    draining = {intent.broker, *last.draining}
    left = estimate_left(last.usage, {*draining, *last.held_back})
    problem = say_left(draining, *left, settings)
    if last.usage and problem:
        yield f"note: {problem}"


def _domain_notes(intent: Intent, last: LastRounds, settings: Settings) -> Iterator[str]:
    if intent.brokers and not settings.placement.failure_domains:
        yield (
            "note: anti-affinity groups do not spread over failure domains while "
            f"placement.failure_domains is off; {_set(intent, 'placement.failure_domains')}"
        )
    for broker in intent.brokers:
        if broker not in last.brokers:
            yield f"note: {broker} is no broker lately; {nearby(broker, last.brokers)}"


def _namespace_notes(
    intent: Intent, last: LastRounds, namespaces: Collection[str]
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


def _namespaces(records: Records) -> set[str]:
    return {namespace_of(bundle) for bundle in records()}


def _set(intent: Intent, name: str) -> str:
    return f"type: trimtab settings set {intent.cluster} {name}=true"


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
