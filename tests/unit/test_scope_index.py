"""A topic's migration and wave are found without a walk through the scopes that waves name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from agent.migration.known import KnownTopics
from control.migration.progress import wave_notes
from tests.support.migrations import GREEN
from tests.support.waves import takes_new, wave_of
from trimtab.migration.life import MigrationState
from trimtab.migration.migration import Migration, Wave
from trimtab.migration.scope_index import ScopeIndex
from trimtab.migration.scopes import CLUSTER, overlap

TOPICS = [
    f"persistent://{namespace}/{name}{part}"
    for namespace in ("t/a", "t/b")
    for name in ("one", "two")
    for part in ("", "-partition-0", "-partition-1")
]
SCOPES = [CLUSTER, "t/a", "t/b", *(each for each in TOPICS if "partition" not in each)]
WAVES = st.lists(
    st.builds(
        Wave,
        st.lists(st.sampled_from(SCOPES), min_size=1, max_size=4).map(tuple),
        st.sampled_from([0.1, 0.5, 1.0]),
    ),
    max_size=4,
).map(tuple)
MIGRATIONS = st.lists(
    st.builds(
        Migration,
        st.just(""),
        st.just("c"),
        st.sampled_from(SCOPES),
        st.just(GREEN),
        st.sampled_from(MigrationState),
        apart=st.lists(st.sampled_from(SCOPES[1:]), max_size=2).map(tuple),
        waves=WAVES,
        wave=st.integers(0, 4),
    ),
    max_size=4,
).map(lambda found: {f"m{n}": replace(it, id=f"m{n}") for n, it in enumerate(found)})


@given(MIGRATIONS, MIGRATIONS)
def test_the_index_finds_what_a_walk_finds(
    before: dict[str, Migration], now: dict[str, Migration]
) -> None:
    index = ScopeIndex(now, ScopeIndex(before, None))
    for topic in TOPICS:
        having = list(index.having(topic))
        assert sorted(each.id for each in having) == [
            name for name, each in now.items() if each.has(topic)
        ]
        for each in having:
            assert index.wave_of(each, topic) == wave_of(each, topic)
        taking = index.taking(topic)
        assert (taking is not None) == any(takes_new(each, topic) for each in now.values())
        assert taking is None or takes_new(taking, topic)


@given(
    st.sampled_from(SCOPES), WAVES, st.lists(st.sampled_from(["t/a", "t/b", "t/c"]), unique=True)
)
def test_the_notes_of_waves_count_the_namespaces_and_topics_that_a_walk_finds(
    scope: str, waves: tuple[Wave, ...], namespaces: list[str]
) -> None:
    known = [each for each in namespaces if overlap(each, scope)]
    counts = list[list[int]]()
    for wave in waves:
        topics = {part for part in wave.scopes if "://" in part}
        whole = set(wave.scopes) - topics
        found = sum(any(overlap(each, part) for part in whole) for each in known)
        counts.append([found] * bool(whole) + [len(topics)] * bool(topics))
    said = [*wave_notes(scope, waves, lambda: namespaces)][: len(waves)]
    told = [re.findall(r"(\d+) (?:namespace|topic)", line.partition("(")[0]) for line in said]
    assert [[int(each) for each in line] for line in told] == counts


class Walked(tuple[str, ...]):
    """Scopes that count how often somebody walks through them."""

    walks = 0

    def __iter__(self) -> Iterator[str]:
        Walked.walks += 1
        return super().__iter__()


def test_scopes_are_walked_once_however_many_topics_are_asked_for() -> None:
    """A thousand names in each of ten waves took the owner 7 ms a topic, and its lease."""
    waves = tuple(
        Wave(Walked(f"persistent://t/ns/{wave}-{number}" for number in range(1000)))
        for wave in range(10)
    )
    known = KnownTopics()
    Walked.walks = 0
    for state in (MigrationState.RUNNING, MigrationState.PAUSED):
        known.migrations = {"m": Migration("m", "c", "t/ns", GREEN, state, waves=waves, wave=10)}
        for number in range(100):
            topic = f"persistent://t/ns/other-{number}"
            [(_, migration)] = known.unlisted("t/ns/0x00000000_0xffffffff", [topic])
            assert known.wave_of(migration, topic) == 10
            assert known.taking(topic) is migration
    assert Walked.walks == len(waves)


def test_the_scopes_of_waves_are_walked_once_however_many_namespaces_there_are() -> None:
    waves = tuple(
        Wave(Walked(f"persistent://t/ns-{number}/{wave}" for number in range(1000)))
        for wave in range(100)
    )
    Walked.walks = 0
    notes = list(wave_notes(CLUSTER, waves, lambda: [f"t/ns-{number}" for number in range(1000)]))
    assert notes[0] == "note: wave 1: 1000 topics"
    assert Walked.walks == len(waves)
