"""An operator's intents reach the brokers, and each has one outcome, on the real services."""

from __future__ import annotations

import pytest
import redis
from typer.testing import Result

from admin.exit_codes import REFUSED
from simulation.load_model import load_model
from simulation.profile import Profile
from sinks.redis.ownership_store import OwnershipStore
from tests.spark.together.conftest import Stage
from tests.support.opening import let_in
from tests.support.running import PATIENCE
from tests.support.verdicts import assert_nothing_was_done_twice
from tests.support.waiting import eventually
from trimtab.ownership import State

# kafka-python, in the agents, leaves the socket of a refused connection to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

CLUSTER = "intended"
FLEET = Profile(
    brokers=3, bundles=6, namespaces=1, low=0.3, high=0.3, rate_sigma=0.0, noise=0.0, seed=5
)
WAIT = ["--wait", str(PATIENCE)]


def test_operators_verbs_take_effect_and_say_so(stage: Stage, client: redis.Redis) -> None:
    model, running = load_model(FLEET), stage.running
    fleet = stage.fleet(model, CLUSTER)

    def trimtab(*words: str) -> Result:
        return stage.trimtab(CLUSTER, *words, "--execute")

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
        outcome = stage.trimtab(CLUSTER, "outcome", "mine")
        assert (outcome.exit_code, "done" in outcome.stdout) == (0, True)
        running.pause(CLUSTER)
        running.await_rest(client, CLUSTER)
    finally:
        fleet.stop()
    assert_nothing_was_done_twice(running.topics, client, CLUSTER)


def is_owned(store: OwnershipStore) -> bool:
    records = store.records(CLUSTER)
    return len(records) == 6 and all(each.state is State.OWNED for each in records.values())
