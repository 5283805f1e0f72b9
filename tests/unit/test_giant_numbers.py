"""JSON and TOML know no bound of integers; one that fits no state once stopped the whole query."""

from __future__ import annotations

import msgspec
import pytest

from tests.support.clusters_by_rows import said
from tests.support.fleets import EIGHTHS, two_each
from trimtab.cluster.operator import Cluster
from trimtab.settings import Settings
from trimtab.settings.setting import InvalidSettings
from trimtab.wire.columns import inflate, pack
from trimtab.wire.intent import IntentKind
from trimtab.wire.ownership import Change
from trimtab.wire.rows import DeadLetter, Row, Tag


@pytest.mark.parametrize("name", ["round.interval", "loadBalancerSheddingIntervalMinutes"])
@pytest.mark.parametrize("value", [10**400, -(10**400), 1 << 63])
def test_a_giant_setting_is_a_problem_like_any_other(name: str, value: int) -> None:
    with pytest.raises(InvalidSettings, match=name):
        Settings().changed({name: value})


@pytest.mark.parametrize("epoch", [[1, 10**40], [10**40, 1], [-1, 1], [1, -1]])
def test_an_epoch_that_no_script_wrote_is_not_read(epoch: list[int]) -> None:
    record = f'{{"state":"Owned","epoch":{epoch}}}'
    bundle = "a/b/0x00000000_0xffffffff"
    change = f'{{"cluster":"c","bundle":"{bundle}","event":"claim","record":{record}}}'
    with pytest.raises(msgspec.ValidationError, match="epoch"):
        msgspec.json.decode(change, type=Change)


@pytest.mark.parametrize("member", ["at", "page", "generation"])
@pytest.mark.parametrize("value", [10**30, 10**400, -1])
def test_an_intent_with_a_number_for_no_state_is_a_dead_letter(member: str, value: int) -> None:
    it = two_each()
    assert reasons(it, said(IntentKind.PAUSE, **{member: value})) == ["bad-record"]
    assert not it.memory.paused


@pytest.mark.parametrize("value", [10**30, 10**400])
def test_so_is_an_isolation_policy_of_more_brokers_than_there_can_be(value: int) -> None:
    policy = {"namespaces": ["t/.*"], "primary": ["a"], "min_available": value}
    assert reasons(two_each(), said(IntentKind.ISOLATION, name="i", isolation=policy)) == [
        "refused-intent"
    ]


@pytest.mark.parametrize("member", ["falls", "v", "since"])
@pytest.mark.parametrize("value", [10**30, 10**400, -1])
def test_so_is_a_record_of_the_journal(member: str, value: int) -> None:
    record = {"state": "Owned", "epoch": [2, 9], "owner": "b:1", member: value}
    change = {"cluster": "c", "bundle": EIGHTHS[0], "event": "claim", "record": record}
    row = Row("c", Tag.CHANGE, "trimtab.ownership/0/1", msgspec.json.encode(change), 0)
    assert reasons(two_each(), row) == ["bad-record"]


def reasons(it: Cluster, row: Row) -> list[str]:
    """Why the row is a dead letter; the state after it must fit."""
    out, _ = it.take([row], 2000)
    assert inflate(it.held().memory) == pack(it.memory)
    letters = (r.payload for r in out if r.tag == Tag.DEAD_LETTER)
    return [msgspec.json.decode(letter, type=DeadLetter).reason for letter in letters]
