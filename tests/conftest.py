"""The real services, started once a session and only when a test asks for them."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator

import pytest
import redis
from hypothesis import settings

from admin.contexts import FILE_VARIABLE
from deploy import jars
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from sinks.redis.server.connections import redis_client
from tests.coverage import named_tests
from tests.support.kafka_archive import quick_kafka

# Tests run on machines shared with other work: an example has no deadline.
settings.register_profile("usual", deadline=None, print_blob=True, max_examples=10)
settings.register_profile("long", settings.get_profile("usual"), max_examples=500)
settings.load_profile("usual")

_PASSED = pytest.StashKey[set[str]]()
_EXPECTED = pytest.StashKey[set[str]]()


def pytest_configure(config: pytest.Config) -> None:
    # The contexts of the user who runs the tests would send commands to their clusters.
    os.environ[FILE_VARIABLE] = os.devnull
    KafkaServer.java_options = quick_kafka()
    config.stash[_PASSED] = set()
    config.stash[_EXPECTED] = set()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Expect those tests that the documents name and this session runs."""
    collected = {item.nodeid.split("[")[0] for item in session.items}
    session.config.stash[_EXPECTED].update(collected.intersection(named_tests()))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call" and report.passed:
        item.config.stash[_PASSED].add(item.nodeid.split("[")[0])
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A named test that was skipped shows nothing; one that failed has failed the session."""
    stash = session.config.stash
    stopped = session.shouldstop or session.shouldfail or session.config.option.collectonly
    if session.exitstatus == pytest.ExitCode.OK and not stopped:
        expected, passed = stash[_EXPECTED], stash[_PASSED]
        missing = sorted(expected - passed)
        if missing:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            print(
                "\nnamed by docs/pulsar-coverage.md or migration.md and not passed:",
                *missing,
                sep="\n  ",
            )


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """One Kafka for every test: a test names its own topics."""
    jars.fetch()
    with KafkaServer(tmp_path_factory.mktemp("kafka")) as server:
        yield server


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """One Redis for every test: a test names its own cluster.

    No test kills it, so it need not wait for the disk, which may stall for longer than a client
    waits.
    """
    with RedisServer(tmp_path_factory.mktemp("redis"), settings=["appendfsync no"]) as server:
        yield server


@pytest.fixture
def client(redis_server: RedisServer) -> Iterator[redis.Redis]:
    """As in production, but for its patience: a test machine may stand still for a second."""
    with redis_client(redis_server.url) as connected:
        connected.connection_pool.connection_kwargs["socket_timeout"] = 30.0
        yield connected
