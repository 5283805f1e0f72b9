"""One example of each form on the wire, built from its type: a cluster ``east``, a broker
``10.0.0.7:8080``, and a bundle that it gives to ``10.0.0.8:8080``."""

from __future__ import annotations

from typing import Final

from trimtab.doubt import Doubt
from trimtab.intent_rules import IntentRule
from trimtab.migration.migration import Counts, Migration, Target, Wave
from trimtab.migration.topic_life import TopicEvent, TopicState
from trimtab.model import Epoch
from trimtab.ownership import Event, State
from trimtab.reasons import Reason
from trimtab.store.ring import position
from trimtab.wire.assertion import Assertion
from trimtab.wire.command import Command, CommandKind, Division
from trimtab.wire.explanation import Explanation, Nearest, Option
from trimtab.wire.hints import Hints, Pool
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.intent_outcome import IntentOutcome, IntentState
from trimtab.wire.lookup import Answer, AnswerKind, Cause, answer_retry
from trimtab.wire.ownership import (
    Candidate,
    Change,
    Neighbour,
    Record,
    Refused,
    Transition,
)
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, Resource
from trimtab.wire.rows import DeadLetter
from trimtab.wire.topics import TopicCall, TopicChange, TopicRecord, Waiting

CLUSTER: Final = "east"
BROKER: Final = "10.0.0.7:8080"
OTHER: Final = "10.0.0.8:8080"
SESSION: Final = 1_767_225_600_000
LOWER: Final = "public/orders/0x00000000_0x40000000"
UPPER: Final = "public/orders/0x40000000_0x80000000"
WHOLE: Final = "public/orders/0x00000000_0x80000000"
HISTORY: Final = "8d1f0c7e5b3a49628d1f0c7e5b3a49628d1f0c7e"
AT: Final = 1_767_225_700_000
_REQUEST: Final = "east/5a3e/41/0"
_DIVISION: Final = Division(
    algorithm="range_equally_divide",
    max_rate=30_000.0,
    max_throughput=104_857_600.0,
    difference=0.1,
)

OWNED: Final = Record(
    state=State.OWNED, epoch=Epoch(7, 12), owner=BROKER, since=AT - 90_000, by="10.0.0.7:8080/claim"
)
RELEASING: Final = Record(
    state=State.RELEASING,
    epoch=Epoch(7, 13),
    owner=BROKER,
    destination=OTHER,
    since=AT,
    by=_REQUEST,
)


def _command(kind: CommandKind, reason: Reason = Reason.OVER_AVERAGE, **members: object) -> Command:
    base = Command(
        id=f"{_REQUEST}/{kind.value}",
        cluster=CLUSTER,
        broker=BROKER,
        kind=kind,
        bundle=LOWER,
        reason=reason,
        plan="east/982",
        **members,  # type: ignore[arg-type]  # each caller names members of Command
    )
    return base.stamped(RELEASING.epoch, AT, AT + 20_000)


_GREEN: Final = Target(
    serviceUrl="http://green.example:8080", brokerServiceUrl="pulsar://green.example:6650"
)

TRANSFER: Final = _command(CommandKind.TRANSFER, source=BROKER, destination=OTHER)

REPORT: Final = LocalBrokerData(
    cpu=Resource(usage=212.0, limit=800.0),
    memory=Resource(usage=2048.0, limit=8192.0),
    direct_memory=Resource(usage=512.0, limit=4096.0),
    bandwidth_in=Resource(usage=81_920.0, limit=1_000_000.0),
    bandwidth_out=Resource(usage=163_840.0, limit=1_000_000.0),
    msg_rate_in=1200.0,
    msg_rate_out=2400.0,
    msg_throughput_in=1_228_800.0,
    msg_throughput_out=2_457_600.0,
    last_stats={
        LOWER: BundleStats(
            msg_rate_in=1200.0,
            msg_rate_out=2400.0,
            msg_throughput_in=1_228_800.0,
            msg_throughput_out=2_457_600.0,
            topics=8,
            consumer_count=16,
            producer_count=8,
        )
    },
    bundles=[LOWER],
    num_topics=8,
    num_bundles=1,
    num_consumers=16,
    num_producers=8,
    last_update=AT,
    start_timestamp=SESSION,
    web_service_url="http://10.0.0.7:8080",
    pulsar_service_url="pulsar://10.0.0.7:6650",
)

COMMANDS: Final[dict[CommandKind, Command]] = {
    CommandKind.UNLOAD: _command(CommandKind.UNLOAD, source=BROKER),
    CommandKind.TRANSFER: TRANSFER,
    CommandKind.PREPARE: _command(CommandKind.PREPARE, source=OTHER),
    CommandKind.OWN: _command(CommandKind.OWN, source=OTHER),
    CommandKind.SPLIT: _command(
        CommandKind.SPLIT, Reason.TOO_MANY_MESSAGES, source=BROKER, division=_DIVISION
    ),
    CommandKind.MERGE: _command(
        CommandKind.MERGE, Reason.COLD_NEIGHBOURS, source=BROKER, neighbour=UPPER
    ),
    CommandKind.TOPIC_MIGRATED: Command(
        id=f"move-1/running/0/{AT}/{BROKER}",
        cluster=CLUSTER,
        broker=BROKER,
        kind=CommandKind.TOPIC_MIGRATED,
        bundle="",
        migration="move-1",
        scope="public/orders",
        target=_GREEN,
        issued_at=AT,
    ),
}

MIGRATION: Final = Migration(
    id="move-1",
    cluster=CLUSTER,
    scope="public/orders",
    target=_GREEN,
    waves=(Wave(("public/orders",), 0.1),),
    counts=(Counts(terminated=1, draining=2, migrated=7, backlog=120, attempts=31), Counts(80)),
    seen=AT,
    at=AT,
    by="ann",
)

TOPIC: Final = TopicRecord(
    state=TopicState.DRAINING,
    migration="move-1",
    epoch=OWNED.epoch,
    backlog=120,
    subscription="bills",
    subscriptions=(Waiting("bills", 100), Waiting("mails", 20)),
)

TOPIC_CALL: Final = TopicCall(
    broker=BROKER,
    session=str(SESSION),
    changes=(
        TopicChange(
            topic="persistent://public/orders/invoices",
            bundle=LOWER,
            position=position("persistent://public/orders/invoices"),
            epoch=OWNED.epoch,
            migration="move-1",
            expect=TopicState.TERMINATED,
            event=TopicEvent.DRAIN,
            backlog=120,
            subscription="bills",
            subscriptions=(Waiting("bills", 100), Waiting("mails", 20)),
        ),
    ),
)

ASSERTION: Final = Assertion(records={LOWER: OWNED})

CHANGE: Final = Change(cluster=CLUSTER, bundle=LOWER, event=Event.TRANSFER, record=RELEASING)

INTENTS: Final = (
    Intent(id="drain-1", kind=IntentKind.DRAIN, cluster=CLUSTER, at=AT, by="ann", broker=BROKER),
    Intent(id="pause-1", kind=IntentKind.PAUSE, cluster=CLUSTER, at=AT, by="ann"),
    Intent(
        id="doubt-1",
        kind=IntentKind.DOUBT,
        cluster=CLUSTER,
        at=AT,
        name="clock",
        level=Doubt.UNSTABLE,
    ),
)

INTENT_OUTCOMES: Final = (
    IntentOutcome(
        cluster=CLUSTER, id="drain-1", kind=IntentKind.DRAIN, state=IntentState.DONE, at=AT
    ),
    IntentOutcome(
        cluster=CLUSTER,
        id="drain-2",
        kind=IntentKind.DRAIN,
        state=IntentState.REFUSED,
        at=AT,
        rule=IntentRule.UNKNOWN_BROKER,
        problems=("broker: 10.0.0.9:8080 is not known; did you mean 10.0.0.8:8080?",),
    ),
)

HINTS: Final = Hints(
    round=982,
    candidates=(Candidate(OTHER, 0.31), Candidate(BROKER, 0.42)),
    each=0.004,
    pools=(Pool(namespaces=("public/audit.*",), candidates=(Candidate(OTHER, 0.31),)),),
    groups={"spread": ("public/one", "public/two")},
    evenly=True,
    proposed={LOWER: OTHER},
)

ANSWERS: Final = (
    Answer(
        kind=AnswerKind.CONNECT, bundle=LOWER, broker=BROKER, epoch=Epoch(7, 12), authoritative=True
    ),
    answer_retry(Cause.HAND_OVER, f"{OTHER} does not serve {LOWER} yet"),
)

EXPLANATION: Final = Explanation(
    cluster=CLUSTER,
    round=982,
    at=AT,
    subject=LOWER,
    strategy="threshold",
    verdict="moved",
    rule=Reason.OVER_AVERAGE,
    why=f"{BROKER} is 12.0 points above the mean of 50.0 %, and sheds from 10.0 points above it on",
    source=BROKER,
    destination=OTHER,
    usage={BROKER: (0.62, 0.55), OTHER: (0.38, 0.45)},
    range=(0.24, 0.1),
    figures={"excess": 0.12, "line": 0.1},
    options=(Option(broker=OTHER, usage=0.45, chosen=True), Option(broker=BROKER, usage=0.62)),
    nearest=Nearest(
        setting="threshold.threshold", now=0.1, then=0.121, so_that="this bundle stays"
    ),
)

DEAD_LETTER: Final = DeadLetter(
    reason="bad-json",
    detail="truncated",
    topic="trimtab.load-reports",
    partition=3,
    offset=8812,
    key=f"{CLUSTER}/{BROKER}",
    size=17,
    head="eyJjcHUiOiB7InVzYWdlIjo=",
)

HAND_OVER: Final = Transition(
    id=f"{TRANSFER.id}/{Event.HAND_OVER.value}",
    bundle=LOWER,
    event=Event.HAND_OVER,
    expect=RELEASING.epoch,
    actor=BROKER,
    session=SESSION,
    commands=(TRANSFER.handed_on(BROKER, OTHER),),
    within_ms=20_000,
)

CLAIM: Final = Transition(
    id=f"{BROKER}/{SESSION}/{LOWER}/7.12/claim",
    bundle=LOWER,
    event=Event.CLAIM,
    expect=Epoch(7, 12),
    broker=BROKER,
    actor=BROKER,
    session=SESSION,
)

ASSIGN: Final = Transition(
    id=f"{BROKER}/{UPPER}/0.0/assign",
    bundle=UPPER,
    event=Event.ASSIGN,
    expect=Epoch(0, 0),
    actor=BROKER,
    candidates=HINTS.candidates,
    each=HINTS.each,
    commands=tuple(
        Command(
            id=f"{BROKER}/{UPPER}/0.0/assign/own",
            cluster=CLUSTER,
            broker=candidate.broker,
            kind=CommandKind.OWN,
            bundle=UPPER,
            reason="lookup",
        )
        for candidate in HINTS.candidates
    ),
    within_ms=30_000,
)

SPLIT_DONE: Final = Transition(
    id=f"{_REQUEST}/split/retire",
    bundle=WHOLE,
    event=Event.RETIRE,
    expect=Epoch(7, 13),
    actor=BROKER,
    session=SESSION,
    children=(LOWER, UPPER),
)

MERGE_DONE: Final = Transition(
    id=f"{_REQUEST}/merge/retire",
    bundle=LOWER,
    event=Event.RETIRE,
    expect=Epoch(7, 13),
    actor=BROKER,
    session=SESSION,
    neighbour=Neighbour(UPPER, Epoch(7, 21)),
    children=(WHOLE,),
)

AFTER_HAND_OVER: Final = Record(
    state=State.ASSIGNING, epoch=Epoch(7, 14), owner=OTHER, since=AT + 800, by=HAND_OVER.id
)
REFUSAL: Final = Refused.STALE_EPOCH
