"""Whatever a broker sends is either poison or a report whose every figure can be computed with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.intake.fold import Arrival, fold
from trimtab.intake.snapshot import IntakeSettings, Snapshot
from trimtab.load import percentages
from trimtab.wire.columns import pack, unpack
from trimtab.wire.reports import decode as decoding
from trimtab.wire.reports.decode import LoadReport, decode
from trimtab.wire.reports.plausible import LIMIT
from trimtab.wire.reports.poison import Poison, PoisonReport

SAMPLE = (Path(__file__).parents[1] / "golden" / "load-reports" / "broker1.json").read_bytes()
BUNDLE = "a/b/0x00000000_0xffffffff"

numbers = st.one_of(
    st.floats(), st.integers(), st.sampled_from([10**400, -(10**400), 1e308, 5e-324, -1, -0.0])
)
anything = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
rates = st.sampled_from(["msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut"])
counts = st.sampled_from(["numTopics", "startTimestamp", "lastUpdate"])
resources = st.sampled_from(["cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut"])
bundle_stats = st.dictionaries(
    st.one_of(rates, st.sampled_from(["topics", "cacheSize"])), st.one_of(numbers, anything)
)
names = st.one_of(
    st.just(BUNDLE), st.text(), st.from_regex(r"\A[^/\n]+/[^\n]+/0x[0-9a-f]{8}_0x[0-9a-f]{8}\Z")
)
reports = st.fixed_dictionaries(
    {},
    optional={
        "lastStats": st.one_of(anything, st.dictionaries(names, bundle_stats, max_size=3)),
        "bundles": st.one_of(anything, st.lists(names, max_size=3)),
        "brokerVersionString": anything,
        "persistentTopicsEnabled": anything,
    },
)
limits = st.dictionaries(st.sampled_from(["usage", "limit"]), numbers)


def test_the_sample_is_no_poison() -> None:
    assert verdict(SAMPLE) is None


@given(st.binary())
def test_any_bytes(value: bytes) -> None:
    verdict(value)


@given(reports, st.dictionaries(resources, st.one_of(anything, limits)), st.data())
def test_any_json(report: dict[str, Any], used: dict[str, Any], data: st.DataObject) -> None:
    flat = data.draw(st.dictionaries(st.one_of(rates, counts), numbers))
    verdict(json.dumps(report | used | flat).encode())


@given(st.integers(0, len(SAMPLE) - 1), st.binary(max_size=4), st.integers(0, 4))
def test_a_damaged_report(at: int, noise: bytes, lost: int) -> None:
    verdict(SAMPLE[:at] + noise + SAMPLE[at + lost :])


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        pytest.param(b"", Poison.JSON, id="nothing"),
        pytest.param(b"{", Poison.JSON, id="cut short"),
        pytest.param(b"{}x", Poison.JSON, id="something after it"),
        pytest.param(b'{"msgRateIn":NaN}', Poison.JSON, id="NaN"),
        pytest.param(b'{"msgRateIn":Infinity}', Poison.JSON, id="infinity"),
        pytest.param(b'{"msgRateIn":"NaN"}', Poison.SHAPE, id="NaN in quotes"),
        pytest.param(b'{"msgRateIn":1e400}', Poison.SHAPE, id="beyond a double"),
        pytest.param(b'{"numTopics":1' + b"0" * 400 + b"}", Poison.RANGE, id="401 digits"),
        pytest.param(b'{"msgRateIn":1e16}', Poison.RANGE, id="beyond any broker"),
        pytest.param(b'{"msgRateIn":-1}', Poison.RANGE, id="a negative rate"),
        pytest.param(b'{"cpu":{"usage":-2,"limit":100}}', Poison.RANGE, id="a negative usage"),
        pytest.param(b'{"cpu":{"usage":9,"limit":1e-300}}', Poison.RANGE, id="infinite percent"),
        pytest.param(b"[" * 3000 + b"]" * 3000, Poison.SHAPE, id="deep list"),
        pytest.param(b'{"x":' + b"[" * 3000 + b"]" * 3000 + b"}", Poison.JSON, id="deep unknown"),
        pytest.param(b'{"bundles":[1]}', Poison.SHAPE, id="a bundle that is no name"),
        pytest.param(b'{"lastStats":{"a/b/c":{}}}', Poison.BUNDLE, id="a range that is none"),
        pytest.param(b'{"brokerVersionString":"\xff"}', Poison.JSON, id="not UTF-8"),
        pytest.param(b"{}", Poison.SHAPE, id="no member at all"),
        pytest.param(b'{"order":7}', Poison.SHAPE, id="something else"),
        pytest.param(b'{"CPU":{"usage":90,"limit":100}}', Poison.SHAPE, id="names in another case"),
        pytest.param(b'{"cpu":{"Usage":90,"Limit":100}}', Poison.SHAPE, id="the same within"),
        pytest.param(b'{"cpu":{"usage":90}}', Poison.SHAPE, id="a usage of nothing"),
        pytest.param(b'{"cpu":null}', Poison.SHAPE, id="a null resource"),
    ],
)
def test_poison_has_a_reason(value: bytes, reason: Poison) -> None:
    assert verdict(value) is reason


@pytest.mark.parametrize("usage", [-1, -1.0])
def test_what_pulsar_calls_unknown_is_no_poison(usage: float) -> None:
    assert verdict(json.dumps({"cpu": {"usage": usage, "limit": -1}}).encode()) is None


def with_bundles(*bundles: str) -> bytes:
    return json.dumps(
        json.loads(SAMPLE) | {"bundles": bundles, "lastStats": {key: {} for key in bundles}}
    ).encode()


def test_a_line_break_in_a_name_is_poison_even_if_the_lines_are_known_names() -> None:
    lower, upper = "a/b/0x00000000_0x80000000", "a/b/0x80000000_0xffffffff"
    assert verdict(with_bundles(lower, upper)) is None
    assert verdict(with_bundles(f"{lower}\n{upper}")) is Poison.BUNDLE
    assert verdict(with_bundles(lower, upper)) is None


def test_names_are_known_again_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list whose names are wrong never is."""
    known = set[bytes]()
    monkeypatch.setattr(decoding, "_CHECKED", known)
    monkeypatch.setattr(decoding, "_MOST_CHECKED", 2)
    for turn in range(9):
        assert verdict(with_bundles(f"a/{turn % 5}/0x00000000_0xffffffff")) is None
        assert verdict(with_bundles(f"a/{turn % 5}/0xffffffff_0x00000000")) is Poison.BUNDLE
        assert 1 <= len(known) <= 2


def verdict(value: bytes) -> Poison | None:
    """Why the bytes are poison; of others, it is checked that any state can take them."""
    try:
        report = decode(value)
    except PoisonReport as error:
        return error.poison
    for column in (report.traffic, report.stats, report.counts):
        assert np.isfinite(column).all()
        assert not column.size or (column.min() >= 0 and column.max() <= LIMIT)
    assert np.isfinite(percentages(report.resources[0], report.resources[1])).all()
    survives_state(report)
    return None


def survives_state(report: LoadReport) -> None:
    """Folded twice, packed and read back, it is still finite and has the same bundles."""
    snapshot = None
    for sequence in (1, 2):
        arrival = Arrival(1000 * sequence, 1, sequence, report)
        folded, _ = fold(snapshot, "broker", [arrival], IntakeSettings(sample_interval=0.0))
        assert folded is not None
        snapshot = unpack(pack(folded), Snapshot)
        assert np.isfinite(snapshot.smoothed).all()
        assert np.isfinite(snapshot.long).all()
        assert snapshot.bundles == report.bundles
