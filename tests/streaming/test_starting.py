"""A job that cannot start says everything that is in its way, and the next command."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from py4j.protocol import Py4JNetworkError

from deploy.ports import free_port
from sinks.errors import Fenced, KafkaUnavailable, Misconfigured, StoreUnavailable
from sinks.exposition import PortTaken
from streaming import job
from streaming.readiness import NotReady
from streaming.shutdown import FAILED, FENCED, OK, UNREACHABLE, USAGE

Check = Callable[[], object]


def raising(error: Exception) -> Check:
    def check() -> None:
        raise error

    return check


def test_every_check_is_made_and_every_error_kept() -> None:
    errors = [KafkaUnavailable("k"), StoreUnavailable("r"), PortTaken("p")]
    with pytest.raises(ExceptionGroup) as caught:
        job.check_all(*map(raising, errors), lambda: None)
    assert [*caught.value.exceptions] == errors
    job.check_all(lambda: None)


@pytest.mark.parametrize(
    ("errors", "code"),
    [
        pytest.param([KafkaUnavailable("k")], UNREACHABLE, id="Kafka is away"),
        pytest.param([KafkaUnavailable("k"), StoreUnavailable("r")], UNREACHABLE, id="both are"),
        pytest.param([KafkaUnavailable("k"), PortTaken("p")], FAILED, id="one needs an operator"),
        pytest.param([Misconfigured("r")], FAILED, id="a refused password"),
        pytest.param([NotReady("c")], FAILED, id="a checkpoint"),
        pytest.param([Fenced("f")], FENCED, id="a newer job"),
    ],
)
def test_the_exit_code_says_whether_another_start_may_help(
    errors: list[Exception],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    def check_all(*_: Check) -> None:
        raise ExceptionGroup("the job cannot start", errors)

    monkeypatch.setattr(job, "check_all", check_all)
    file = tmp_path / "trimtab.toml"
    file.write_text("")
    with pytest.raises(SystemExit) as ended:
        job.run(file)
    assert ended.value.code == code
    said = capsys.readouterr().err.splitlines()
    assert "\n".join(said[:-1]) == "\n".join(map(str, errors)) + "; nothing was started"
    assert said[-1] == f"Next: trimtab doctor --config {file}"


def test_kafka_and_redis_that_are_both_away_are_told_together(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sinks.kafka.clients.TIMEOUT_SECONDS", 0.5)
    kafka, redis = (f"127.0.0.1:{free_port()}" for _ in range(2))
    monkeypatch.setenv("TRIMTAB_KAFKA__BOOTSTRAP", kafka)
    monkeypatch.setenv("TRIMTAB_REDIS_URL", f"redis://:hushhush@{redis}")
    monkeypatch.setenv("TRIMTAB_METRICS_PORT", "0")
    with pytest.raises(SystemExit) as ended:
        job.run(None)
    said = capsys.readouterr().err
    assert ended.value.code == UNREACHABLE
    assert f"Kafka at {kafka}" in said
    assert f"Redis at {redis}" in said
    assert "hushhush" not in said
    assert said.endswith(f"Next: trimtab doctor --kafka {kafka}\n")


def test_an_address_of_no_redis_is_a_wrong_setting(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRIMTAB_REDIS_URL", "localhost:hushhush")
    with pytest.raises(SystemExit) as ended:
        job.run(None)
    said = capsys.readouterr().err
    assert (ended.value.code, "hushhush" in said) == (USAGE, False)
    assert "redis_url: the Redis address is not redis://host:port/db" in said


@pytest.fixture
def signals_as_before() -> Iterator[None]:
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


@pytest.mark.usefixtures("signals_as_before")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_while_spark_starts_lets_it_start_and_makes_no_claim(
    sent: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[signal.Signals] = []

    def start_spark(*_: object, **__: object) -> None:
        os.kill(os.getpid(), sent)
        started.append(sent)

    def claim(*_: object) -> None:
        pytest.fail("a job that was asked to stop has claimed")

    replace_checks(monkeypatch)
    monkeypatch.setattr(job, "start_spark", start_spark)
    monkeypatch.setattr(job, "Driver", claim)
    with pytest.raises(SystemExit) as ended:
        job.run(None)
    assert (ended.value.code, started) == (OK, [sent])


@pytest.mark.usefixtures("signals_as_before")
@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize(
    "error",
    [
        pytest.param(NotReady("Spark does not start"), id="as Spark starts"),
        pytest.param(Py4JNetworkError("Answer from Java side is empty"), id="in a call"),
        pytest.param(ConnectionRefusedError(111, "Connection refused"), id="before a call"),
    ],
)
def test_a_jvm_that_ends_before_the_job_runs_is_a_failure_unless_it_was_asked_to_stop(
    error: Exception,
    asked: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A supervisor's signal goes to the JVM too."""

    def start_spark(*_: object, **__: object) -> None:
        if asked:
            os.kill(os.getpid(), signal.SIGTERM)
        raise error

    replace_checks(monkeypatch)
    monkeypatch.setattr(job, "start_spark", start_spark)
    with pytest.raises(SystemExit) as ended:
        job.run(None)
    assert ended.value.code == (OK if asked else FAILED)
    said = capsys.readouterr().err
    assert (str(error) in said) is not asked


def replace_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIMTAB_METRICS_PORT", "0")
    for name in ("check_all", "check_connector", "check_checkpoint", "_warm_up"):
        monkeypatch.setattr(job, name, lambda *_: None)
