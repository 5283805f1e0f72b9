"""The job's memory and the time between its batches follow from the fleet's size; what does not fit
is said before it fails."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from pydantic import ValidationError

from sinks.exposition import Exposition
from streaming.config import JobConfig, SparkConfig
from streaming.sizing import Size, SizeWatch, find_shortage, machine_mib
from tests.support.demo_rounds import record

WHOLE = machine_mib(Path("/nowhere"))


def test_the_usual_fleet_needs_less_than_a_gibibyte_of_heap() -> None:
    assert Size().heap_mib == 928
    assert JobConfig().sized_spark().driver_memory == "928m"


def test_a_larger_fleet_gets_more() -> None:
    config = JobConfig(size=Size(brokers=10_000, bundles=1_000_000))
    assert config.sized_spark().driver_memory == "2370m"
    assert config.size.whole_mib == 5623


def test_a_heap_that_is_named_stays() -> None:
    config = JobConfig(spark=SparkConfig(driver_memory="3g"))
    assert config.sized_spark().driver_memory == "3g"


@pytest.mark.parametrize(
    ("brokers", "seconds"),
    [(100, 1.0), (3_000, 1.0), (5_000, 1.5), (10_000, 3.0), (100_000, 5.0)],
)
def test_batches_of_a_larger_fleet_follow_each_other_at_more_distance(
    brokers: int, seconds: float
) -> None:
    assert JobConfig(size=Size(brokers=brokers)).sized_trigger() == pytest.approx(seconds)


@pytest.mark.parametrize("seconds", [0.0, 10.0])
def test_a_time_between_batches_that_is_named_stays(seconds: float) -> None:
    config = JobConfig(size=Size(brokers=10_000), trigger_seconds=seconds)
    assert config.sized_trigger() == seconds


def test_a_size_without_brokers_is_refused() -> None:
    with pytest.raises(ValidationError, match="greater than 0"):
        Size(brokers=0)


def test_a_machine_that_is_too_small_is_named_with_what_to_change() -> None:
    large = Size(brokers=10_000, bundles=1_000_000)
    assert find_shortage(large, 5623) == ""
    assert find_shortage(large, 4096) == (
        "a fleet of 10000 brokers and 1000000 bundles (`size`) needs 5623 MiB, this machine has "
        "4096: give it more memory, or set what the fleet really has"
    )


@pytest.mark.parametrize(
    ("limit", "mib"),
    [("536870912\n", 512), ("max\n", WHOLE), (f"{2 * WHOLE << 20}\n", WHOLE)],
    ids=["a limit", "none", "more than there is"],
)
def test_a_container_has_what_its_limit_says(limit: str, mib: int, tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text(limit)
    assert machine_mib(tmp_path / "memory.max") == mib


def test_a_fleet_that_outgrows_the_job_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    shown = Exposition()
    watch = SizeWatch(Size(brokers=10, bundles=100), shown)
    said = []
    for cluster, brokers, bundles in (
        ("east", 4.0, 60.0),
        ("west", 4.0, 60.0),
        ("west", 5.0, 60.0),
        ("west", 5.0, 20.0),
        ("west", 7.0, 20.0),
    ):
        seen = {"brokers": brokers, "bundles": bundles}
        watch.note(msgspec.structs.replace(record(1), cluster=cluster, summary=seen))
        used = shown.registry.get_sample_value("trimtab_size_used_ratio")
        said.append((used, capsys.readouterr().out.count("the fleet outgrew the job")))
    assert said == [(0.6, 0), (1.2, 1), (1.2, 0), (0.9, 0), (1.1, 1)]
