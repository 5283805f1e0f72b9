"""What a cluster and a broker may be called: no cluster's Redis keys are those of another."""

from __future__ import annotations

from string import printable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sources.records import Record, row_of
from trimtab.model import InvalidName, parse_subject
from trimtab.wire import keys
from trimtab.wire.rows import Tag

NAMES = st.text(st.sampled_from(sorted({*printable} - {"/"})), min_size=1, max_size=12)


@pytest.mark.parametrize("name", ["10.0.0.7:8080", "[::1]:8080", "b-1.example.org:443", "a|~*?"])
def test_a_brokers_name_is_its_host_and_port(name: str) -> None:
    assert parse_subject(f"east/{name}") == ("east", name)


@pytest.mark.parametrize("brace", ["{", "}"])
def test_a_name_with_a_brace_is_refused(brace: str) -> None:
    for key in (f"ea{brace}st/a:1", f"east/a{brace}:1"):
        with pytest.raises(InvalidName):
            parse_subject(key)


def test_an_intent_for_a_cluster_with_a_brace_is_for_no_cluster() -> None:
    record = Record(topic=keys.CONTROL, partition=0, offset=1, at=1, key=b"a}:lease:x", value=b"")
    assert row_of(record, Tag.INTENT).cluster == ""


def is_valid(cluster: str, broker: str) -> bool:
    try:
        parse_subject(f"{cluster}/{broker}")
    except InvalidName:
        return False
    return True


def keys_of(cluster: str, broker: str) -> set[str]:
    of_cluster = (
        keys.open_key,
        keys.ownership_key,
        keys.journal_key,
        keys.bundles_key,
        keys.applied_key,
        keys.whys_key,
        keys.sessions_key,
        keys.clock_key,
    )
    of_broker = (keys.lease_key, keys.owned_key, keys.command_stream, keys.successor_key)
    names = {name(cluster) for name in of_cluster} | {name(cluster, broker) for name in of_broker}
    said = keys.assertion_key(cluster, "0" * 40, broker)
    return {*names, keys.explanations_key(cluster, 1), said}


@given(NAMES, NAMES, NAMES, NAMES)
@example("east", "ghost}:open", "east}:lease:ghost", "x:1")
@example("east:lease", "open", "east", "lease:open")
def test_two_clusters_share_no_key(one: str, a: str, other: str, b: str) -> None:
    if one != other and is_valid(one, a) and is_valid(other, b):
        assert not keys_of(one, a) & keys_of(other, b)
