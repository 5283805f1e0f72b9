"""Redis or Kafka gone while the job runs: it waits, resumes, and nothing is lost or done twice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis
from pyspark.sql import SparkSession

from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from simulation.load_model import load_model
from simulation.profile import Profile
from sinks.redis.server.connections import redis_client
from streaming.config import load_config
from tests.support.jobs import write_settings
from tests.support.opening import let_in
from tests.support.running import PATIENCE, Running
from tests.support.seesaw import Seesaw
from tests.support.verdicts import assert_nothing_was_done_twice
from tests.support.waiting import eventually

# kafka-python, in the agents, leaves the socket of a refused connection to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

CLUSTER = "away"
FLEET = Profile(brokers=4, bundles=16, namespaces=2, low=0.3, high=0.7, seed=3)


@dataclass
class Bench:
    """Services of this test alone, a restless fleet, and the job."""

    kafka: KafkaServer
    server: RedisServer
    client: redis.Redis
    running: Running

    def moves(self) -> int:
        return sum(len(r.moves) for b in self.running.batches(CLUSTER) for r in b.rounds)

    def await_moves(self, more: int = 3) -> None:
        goal = self.moves() + more
        eventually(lambda: self.moves() >= goal, f"{goal} moves", PATIENCE, pause=0.5)

    def finish(self) -> None:
        """Compare what the job left behind with a run in which nothing failed; it has ended."""
        query = self.running.batches(CLUSTER)[-1].query
        self.running.replayed(query)
        assert_nothing_was_done_twice(self.running.topics, self.client, CLUSTER)


@pytest.fixture
def bench(tmp_path: Path, spark: SparkSession) -> Iterator[Bench]:
    with ExitStack() as stack:
        kafka = stack.enter_context(KafkaServer(tmp_path / "kafka"))
        server = stack.enter_context(RedisServer(tmp_path / "redis"))
        client = stack.enter_context(redis_client(server.url))
        let_in(client, CLUSTER, 1)
        stack.enter_context(Seesaw(load_model(FLEET), kafka.bootstrap, server.url, CLUSTER))
        config = load_config(write_settings(tmp_path, kafka.bootstrap, server.url))
        yield Bench(kafka, server, client, Running(config, spark))


@pytest.mark.slow
def test_redis_and_then_kafka_killed_and_started_again_and_a_job_that_waits_is_stopped(
    bench: Bench,
) -> None:
    with bench.running:
        bench.await_moves()
        generation = bench.running.metric("trimtab_generation")
        bench.server.kill()
        bench.running.await_metric(1, "trimtab_sink_waits_total", sink="redis")
        bench.server.start()
        bench.await_moves()
        # The last second's writes may be lost: their epochs must not be given out again.
        assert bench.running.metric("trimtab_generation") > generation
        bench.kafka.kill()
        bench.kafka.start()
        bench.await_moves()
        pause(bench)
    bench.finish()
    with bench.running:
        bench.running.await_metric(1, "trimtab_batches_total")
        bench.server.kill()
        bench.running.await_metric(1, "trimtab_sink_waits_total", sink="redis")
    bench.server.start()


def pause(bench: Bench) -> None:
    """Stop further moves, and wait until those under way are journalled: only then can all sides be
    compared."""
    bench.running.pause(CLUSTER)
    bench.running.await_rest(bench.client, CLUSTER)
