"""A migration with a real job, a real agent and its topics: from the command to its end."""

from __future__ import annotations

import json

import pytest
import redis
from typer.testing import Result

from agent.running import running as running_agent
from agent.settings import AgentSettings
from sinks.redis.migrations import Migrations
from tests.agent.support import BUNDLE, SESSION, A
from tests.spark.together.conftest import Stage
from tests.support.green_server import green
from tests.support.migrating_broker import MigratingBroker, Storage
from tests.support.opening import let_in
from tests.support.running import PATIENCE
from tests.support.waiting import eventually
from trimtab.migration.migration import Counts

# kafka-python, in the agents, leaves the socket of a refused connection to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

CLUSTER = "migrated"
WAVE = "persistent://t/ns/0"


def test_a_migration_runs_in_waves_is_rolled_back_and_says_what_stays(
    stage: Stage, client: redis.Redis
) -> None:
    storage = Storage()
    for number in range(6):
        storage.topic(f"persistent://t/ns/{number}", slow=0).written = 1
    broker = MigratingBroker(storage, BUNDLE)
    own = AgentSettings(CLUSTER, A, SESSION, report_interval=0.5)

    def trimtab(*words: str) -> Result:
        return stage.trimtab(CLUSTER, *words)

    let_in(client, CLUSTER, 1)
    store = Migrations(client)
    with (
        green({"clusters": ["green"], "brokers/green": ["g:8080"]}) as url,
        running_agent(broker, own, stage.kafka, stage.redis_url) as agent,
    ):
        eventually(lambda: agent.serves(BUNDLE), "served", PATIENCE, pause=0.5)
        stage.running.await_metric(1, "trimtab_rounds_total", cluster=CLUSTER)
        to = ["--service-url", url, "--broker-service-url", url.replace("http:", "pulsar:")]
        said = ["migration", "start", "--scope", "t/ns", "--wave", WAVE, *to]
        begun = trimtab(*said, "--id", "m", "--wait", str(PATIENCE), "--execute")
        assert begun.exit_code == 0, begun.output

        # The wave's topic has a backlog, which the gate does not allow.
        eventually(
            lambda: store.counts(CLUSTER, "m").get("0", Counts()).backlog == 1, "wave", PATIENCE
        )
        assert store.read(CLUSTER)["m"].wave == 0
        storage.blue[WAVE].subscriptions["slow"] = 1
        eventually(lambda: store.read(CLUSTER)["m"].wave == 1, "next wave", PATIENCE)
        eventually(lambda: store.counts(CLUSTER, "m")["1"].begun == 5, "all begun", PATIENCE)

        storage.green["persistent://t/ns/3"] = 1
        back = ["migration", "rollback", "m", "--wait", str(PATIENCE), "--execute"]
        assert trimtab(*back).exit_code == 0
        ended = "rolled-back"
        eventually(lambda: store.read(CLUSTER)["m"].state == ended, "back", PATIENCE)
        said = trimtab("migration", "report", "m", "-o", "json").stdout.splitlines()
        # The job runs in this process, and may log meanwhile.
        told = json.loads(next(line for line in said if line.startswith("{")))
        assert [each["topic"] for each in told["stays"]] == ["persistent://t/ns/3"]
        assert {name for name, log in storage.blue.items() if not log.ended} == {
            f"persistent://t/ns/{number}" for number in (0, 1, 2, 4, 5)
        }
