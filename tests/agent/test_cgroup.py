"""Limits and use of nested control groups, from a file system small enough to read."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.reports.cgroup import Share, cpu_share, memory_share
from tests.agent.cgroup_files import INSIDE, OWN, POD, TOP, cpu, memory, write


@pytest.mark.parametrize(
    ("own", "pod", "cores", "holds"),
    [
        pytest.param("150000 100000", "400000 100000", 1.5, OWN, id="its own"),
        pytest.param("400000 100000", "150000 100000", 1.5, POD, id="that of a group above"),
        pytest.param("max 100000", "150000 100000", 1.5, POD, id="the only one"),
        pytest.param("25000 50000", "60000 100000", 0.5, OWN, id="in periods of another length"),
        pytest.param("50000 100000", "50000 100000", 0.5, POD, id="of equals the outer one"),
    ],
)
def test_the_tightest_limit_holds_with_the_use_of_the_group_that_has_it(
    tmp_path: Path, own: str, pod: str, cores: float, holds: str
) -> None:
    write(tmp_path, INSIDE | cpu(OWN, own, 7) | cpu(POD, pod, 9) | cpu(TOP, "max 100000", 99))
    assert cpu_share(tmp_path) == Share(cores, {OWN: 7, POD: 9}[holds], tmp_path / holds)


def test_file_pages_that_are_given_back_when_asked_are_not_in_use(tmp_path: Path) -> None:
    write(tmp_path, INSIDE | memory(OWN, "max", 50) | memory(POD, "1000", held=900, files=300))
    assert memory_share(tmp_path) == Share(1000, 600, tmp_path / POD)


def test_memory_read_at_two_moments_is_never_negative(tmp_path: Path) -> None:
    write(tmp_path, INSIDE | memory(OWN, "1000", held=10, files=20))
    assert memory_share(tmp_path) == Share(1000, 0, tmp_path / OWN)


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({}, id="no control groups"),
        pytest.param({"proc/self/cgroup": "4:memory:/jobs\n1:cpu:/\n"}, id="version 1 only"),
        pytest.param(INSIDE | cpu(OWN, "max 100000") | memory(OWN, "max"), id="unlimited"),
    ],
)
def test_without_a_limit_there_is_no_share(tmp_path: Path, files: dict[str, str]) -> None:
    write(tmp_path, files)
    assert cpu_share(tmp_path) is None
    assert memory_share(tmp_path) is None


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("0::/", id="with a namespace of its own"),
        pytest.param("0::/system.slice/docker-1.scope", id="under its name on the host"),
        pytest.param("0::/../../elsewhere", id="outside of what is mounted"),
    ],
)
def test_a_container_that_sees_its_group_as_the_top_finds_its_limit(
    tmp_path: Path, name: str
) -> None:
    write(tmp_path, {"proc/self/cgroup": f"{name}\n"} | cpu(TOP, "200000 100000", 3))
    write(tmp_path, cpu("sys/elsewhere", "100 100000"))
    assert cpu_share(tmp_path) == Share(2, 3, tmp_path / TOP)
