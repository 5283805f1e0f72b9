"""JSON and TOML know no bound of integers; one that fits no state once stopped the whole query."""

from __future__ import annotations

import msgspec
import pytest

from trimtab.settings import Settings
from trimtab.settings.setting import InvalidSettings
from trimtab.wire.ownership import Change


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
