"""An operator's intents reach the brokers, and each has one outcome, on the real services."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from admin import cli
from admin.exit_codes import REFUSED
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from simulation.fleet import Fleet, FleetSettings
from simulation.load_model import load_model
from simulation.profile import Profile
from sinks.redis.ownership_store import OwnershipStore
from sinks.redis.server.connections import redis_client
from streaming.config import load_config
from tests.support.jobs import QUICK, write_settings
from tests.support.opening import let_in
from tests.support.running import PATIENCE, Running
from tests.support.verdicts import assert_nothing_was_done_twice
from tests.support.waiting import eventually
from trimtab.ownership import State

# kafka-python, in the agents, leaves the socket of a refused connection to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

CLUSTER = "intended"
FLEET = Profile(
    brokers=3, bundles=6, namespaces=1, low=0.3, high=0.3, rate_sigma=0.0, noise=0.0, seed=5
)
SETTINGS = {**QUICK, "round.shedding": "overload", "round.placement": "least-long-term-rate"}
"""Nobody is overloaded: only operators move anything."""
WAIT = ["--wait", str(PATIENCE)]


def test_operators_verbs_take_effect_and_say_so(
    spark: SparkSession, kafka: KafkaServer, redis_server: RedisServer, tmp_path: Path
) -> None:
    file = write_settings(tmp_path, kafka.bootstrap, redis_server.url, SETTINGS)
    model = load_model(FLEET)
    fleet = Fleet(model, FleetSettings(kafka.bootstrap, redis_server.url, CLUSTER, 0.5))
    running = Running(load_config(file), spark)

    def trimtab(*words: str) -> Result:
        where = ["--cluster", CLUSTER, "--config", str(file), "--execute"]
        return CliRunner().invoke(cli.build_app(), [*words, *where])

    with redis_client(redis_server.url) as client, running:
        store = OwnershipStore(client)
        let_in(client, CLUSTER, 1)
        fleet.start()
        try:
            eventually(lambda: is_owned(store), "all owned", PATIENCE, pause=0.5)
            running.await_metric(1, "trimtab_rounds_total", cluster=CLUSTER)
            bundle = min(model.bundles)
            transfer = ("bundles", "transfer", bundle)
            source = store.records(CLUSTER)[bundle].owner
            to, third = sorted({*fleet.snapshot().brokers} - {source})

            moved = trimtab(*transfer, to, "--id", "mine", *WAIT)
            # The job runs in this process, and its log goes to the same place.
            assert (moved.exit_code, "mine" in moved.stdout.split()) == (0, True), moved.output
            assert store.records(CLUSTER)[bundle].owner == to

            # The same request once more, and another that takes its id.
            again = trimtab(*transfer, to, "--id", "mine", "--unchecked")
            other = trimtab(*transfer, third, "--id", "mine")
            drained = trimtab("brokers", "drain", to, *WAIT)
            assert [again.exit_code, other.exit_code, drained.exit_code] == [0, REFUSED, 0]
            assert "(id-in-use)" in other.stderr
            assert to not in {record.owner for record in store.records(CLUSTER).values()}

            refused = trimtab(*transfer, to, "--unchecked", *WAIT)
            assert refused.exit_code == REFUSED
            assert "(invalid-move)" in refused.stderr
            outcome = CliRunner().invoke(
                cli.build_app(), ["outcome", "mine", "--cluster", CLUSTER, "--config", str(file)]
            )
            assert (outcome.exit_code, "done" in outcome.stdout) == (0, True)
            running.pause(CLUSTER)
            running.await_rest(client, CLUSTER)
        finally:
            fleet.stop()
    with redis_client(redis_server.url) as client:
        assert_nothing_was_done_twice(running.topics, client, CLUSTER)


def is_owned(store: OwnershipStore) -> bool:
    records = store.records(CLUSTER)
    return len(records) == 6 and all(each.state is State.OWNED for each in records.values())
