"""A shadow changes nothing for the active strategy, and has its figures if it decides alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from simulation.load_model import load_model
from simulation.profile import Profile
from simulation.replay.batches import Replay
from tests.support.clusters_by_rows import said
from tests.support.examples import examples
from tests.support.landing import Landing
from tests.support.random_clusters import PAIRS
from tests.support.recordings import AVG, Batch, recordings
from trimtab.cluster.export import ClusterExport
from trimtab.intake.snapshot import IntakeSettings
from trimtab.reasons import IDLE, Reason
from trimtab.settings import Settings
from trimtab.wire.intent import IntentKind
from trimtab.wire.rounds import RoundRecord
from trimtab.wire.rows import Row, Tag

INTAKE = IntakeSettings(sample_interval=1.0)

READY = {
    "unload.min_rate": 1.0,
    "unload.max_share": 0.5,
    "avg.low_hits": 1,
    "avg.high_hits": 1,
    "threshold.threshold": 0.05,
    "threshold.min_throughput": 0,
    "transfer.hits": 0,
    "transfer.target_deviation": 0.05,
    "round.grace_period": 120.0,
    # No owner carries out a split here.
    "split.enabled": False,
}
"""Every strategy acts on what it sees first."""

pairs = st.sampled_from(PAIRS)


def beside(pair: tuple[str, str]) -> dict[str, object]:
    return {"shadow.shedding": pair[0], "shadow.placement": pair[1]}


def in_charge(pair: tuple[str, str]) -> dict[str, object]:
    return {"round.shedding": pair[0], "round.placement": pair[1]}


def rounds_in(rows: Iterable[Row]) -> list[RoundRecord]:
    return [msgspec.json.decode(r.payload, type=RoundRecord) for r in rows if r.tag == Tag.ROUND]


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    brokers = draw(st.integers(2, 5))
    return Profile(
        brokers=brokers,
        bundles=brokers * draw(st.integers(1, 6)),
        namespaces=2,
        noise=draw(st.sampled_from([0.0, 0.05])),
        seed=draw(st.integers(0, 1000)),
    )


@examples(30)
@given(recordings(), pairs)
def test_the_champion_decides_as_it_would_alone(
    batches: list[Batch], challenger: tuple[str, str]
) -> None:
    alone = Replay(INTAKE, AVG)
    accompanied = Replay(INTAKE, AVG.changed(beside(challenger)))
    for at, records in batches:
        one, other = (rounds_in(replay.run(at, records)) for replay in (alone, accompanied))
        assert all(record.shadow is not None for record in other)
        assert list(map(told, other)) == list(map(told, one))
        assert_the_challengers_world_is_there(accompanied)


def told(record: RoundRecord) -> RoundRecord:
    """A round's record without its shadow's part."""
    return msgspec.structs.replace(record, shadow=None, state_hash="")


def assert_the_challengers_world_is_there(replay: Replay) -> None:
    """It holds brokers and bundles that exist."""
    for cluster in replay.clusters.values():
        shadow = cluster.memory.shadow
        for bundle, broker in shadow.elsewhere.items() if shadow else ():
            assert bundle in cluster.records(bundle.rpartition("/")[0])
            assert f"{cluster.name}/{broker}" in replay.stored.snapshots


@examples(18)
@given(profiles(), pairs, st.sampled_from([0, 3]), st.integers(0, 5))
def test_a_challenger_that_decides_alike_lives_in_the_true_world(
    profile: Profile, pair: tuple[str, str], budget: int, drained: int
) -> None:
    chosen = READY | in_charge(pair) | beside(pair) | {"round.max_moves": budget}
    landing = Landing(load_model(profile), chosen)
    for number in range(6):
        if number == drained:
            emptied = said(IntentKind.DRAIN, broker=landing.brokers[0])
            landing.cluster.receive([emptied], landing.now_ms)
        record = landing.round()
        assert record.shadow is not None
        assert all(problem.startswith(("frozen: ", "draining ")) for problem in record.problems)
        champion, challenger = record.shadow.champion, record.shadow.challenger
        assert champion == challenger
        known = landing.cluster.memory.shadow
        assert known is not None
        own = {m.bundle: m.destination for m in record.moves if m.reason != Reason.DRAINED}
        assert known.elsewhere == own if record.skipped in {"", *IDLE} else not own


@examples(18)
@given(profiles(), pairs, pairs)
def test_another_challenger_begins_where_the_champion_is(
    profile: Profile, first: tuple[str, str], second: tuple[str, str]
) -> None:
    landing = Landing(load_model(profile), READY | in_charge(first) | beside(second))
    for _ in range(3):
        landing.round()
    landing.cluster.defaults = landing.cluster.defaults.changed(beside(first))
    for _ in range(3):
        record = landing.round()
        assert record.shadow is not None
        assert record.shadow.champion == record.shadow.challenger


@examples(10)
@given(recordings(), pairs)
def test_a_replay_with_a_challenger_goes_on_from_its_exports(
    batches: list[Batch], challenger: tuple[str, str]
) -> None:
    chosen = AVG.changed(beside(challenger))
    whole, followers = Replay(INTAKE, chosen), dict[str, Replay]()
    for at, records in batches:
        rows = whole.run(at, records)
        for cluster, replay in followers.items():
            assert replay.run(at, records) == [row for row in rows if row.cluster == cluster]
            assert replay.fingerprint(cluster) == whole.fingerprint(cluster)
        for cluster, held in exported(rows).items():
            if cluster not in followers:
                followers[cluster] = restored(cluster, held, chosen)


def restored(cluster: str, held: ClusterExport, chosen: Settings) -> Replay:
    replay = Replay(INTAKE, chosen)
    replay.restore(cluster, held)
    return replay


def exported(rows: Iterable[Row]) -> Mapping[str, ClusterExport]:
    told: dict[str, list[tuple[str, bytes]]] = {}
    for row in rows:
        if row.tag == Tag.STATE:
            told.setdefault(row.cluster, []).append((row.subject, row.payload))
    return {cluster: ClusterExport.of(parts) for cluster, parts in told.items()}
