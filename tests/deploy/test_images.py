"""The Dockerfile, read without an engine: what it copies exists, and the wheel has what runs."""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import pytest

from deploy import jars
from tests.support.deployed import ROOT

DOCKERFILE = ROOT / "deploy/docker/Dockerfile"
UID = "10001"


class Step(NamedTuple):
    """An instruction, in the stage it belongs to; "" before the first one."""

    stage: str
    name: str
    rest: str


def steps() -> list[Step]:
    """All instructions; comments are left out, and lines that go on are joined."""
    lines = [line for line in DOCKERFILE.read_text("utf-8").splitlines() if line.strip()]
    kept = [line for line in lines if not line.lstrip().startswith("#")]
    found, stage = [], ""
    for line in "\n".join(kept).replace("\\\n", " ").splitlines():
        name, _, rest = line.partition(" ")
        if name == "FROM":
            stage = rest.split(" AS ")[1]
        found.append(Step(stage, name, rest.strip()))
    return found


def of(stage: str, name: str) -> list[str]:
    return [each.rest for each in steps() if each.stage == stage and each.name == name]


def test_the_builder_must_name_the_digest_of_the_base() -> None:
    assert of("", "ARG") == ["BASE_IMAGE=debian:bookworm-slim", "BASE_DIGEST"]
    bases = {each.rest.split(" AS ")[0] for each in steps() if each.name == "FROM"}
    own = {each.stage for each in steps()}
    assert bases - own == {"${BASE_IMAGE}@${BASE_DIGEST}"}


@pytest.mark.parametrize("stage", ["tools", "job"])
def test_an_image_does_not_run_as_root(stage: str) -> None:
    assert of(stage, "USER")[-1] == f"{UID}:{UID}"
    [last] = [each for each in steps() if each.stage == stage and each.name == "ENTRYPOINT"]
    assert shlex.split(last.rest.strip("[]").replace(",", " "))[:2] == ["/usr/bin/tini", "--"]


def test_what_is_copied_exists_and_is_let_through() -> None:
    ignored = (DOCKERFILE.parent / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    let_through = {line[1:] for line in ignored if line.startswith("!")}
    copied = set()
    for each in steps():
        words = each.rest.split()
        if each.name == "COPY" and not words[0].startswith("--from"):
            copied |= {word for word in words[:-1] if not word.startswith("--")}
    assert copied == let_through
    for name in copied:
        # The wheel is made by `make wheel`.
        assert name == "dist/trimtab-*.whl" or (ROOT / name).is_file()


def test_the_wheel_brings_the_programs_and_the_files_that_images_name() -> None:
    ours = {each.name for each in entry_points(group="console_scripts") if each.dist is not None}
    for stage in ("tools", "job"):
        [command] = of(stage, "CMD")
        assert shlex.split(command.strip("[]").replace(",", " "))[0] in ours
    # `python -m deploy.jars` reads its lock, and the driver's JVM two files, from the package.
    packaged = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    patterns = packaged["tool"]["setuptools"]["package-data"]["*"]
    for package, name in (
        ("deploy", "jars.lock"),
        ("streaming", "log4j2.properties"),
        ("streaming", "compilers.txt"),
    ):
        assert f"*{Path(name).suffix}" in patterns
        assert files(package).joinpath(name).is_file()


def test_the_jars_of_the_image_are_where_the_job_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    [run] = of("jars", "RUN")
    assert run == "XDG_CACHE_HOME=/var/cache /opt/trimtab/bin/python -m deploy.jars connector"
    assert "XDG_CACHE_HOME=/var/cache" in of("job", "ENV")[0].split()
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache")
    assert all(str(jar.path).startswith("/var/cache/trimtab/") for jar in jars.list_locked())
    assert "/var/cache/trimtab /var/cache/trimtab" in of("job", "COPY")[0]


def test_the_base_has_a_python_that_the_lock_is_for() -> None:
    """Debian 12 has Python 3.11; the path of Spark in the image names it."""
    packaged = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert packaged["project"]["requires-python"] == ">=3.11"
    [environment] = of("job", "ENV")
    [home] = re.findall(r"SPARK_HOME=(\S+)", environment)
    assert home == "/opt/trimtab/lib/python3.11/site-packages/pyspark"
    spark = Path(sys.modules["pyspark"].__file__ or "").parent if "pyspark" in sys.modules else None
    if spark is not None:
        assert (spark / "bin/spark-submit").is_file()
