"""Anybody who may send reports can make up a cluster; the job goes on with the others."""

from __future__ import annotations

import pytest

from deploy.redis_server import RedisServer
from sinks.kafka.publisher import Outgoing
from tests.faults.job import Job
from tests.faults.table import Row
from tests.faults.topics import Claims, Topics
from tests.support.jobs import QUICK
from tests.support.waiting import eventually
from trimtab.wire import keys


@pytest.mark.fault(26, "one byte under the key of a new cluster")
@pytest.mark.parametrize("observes", [True, False], ids=["observing", "acting"])
def test_a_byte_from_nowhere(row: Row, redis_server: RedisServer, observes: bool) -> None:
    settings = {**QUICK, "round.observe_only": observes}
    job = Job(f"byte-{observes}", redis_server.url, Topics(), Claims(), settings, 3.0)
    job.start()
    try:
        job.topics.publish([Outgoing(keys.LOAD_REPORTS, "newcomer/a:1", b"x")])
        eventually(lambda: job.failure or len(rounds(job)) > 2, "rounds of the newcomer")
    finally:
        # Raises the error that it failed with.
        job.stop()
    row.note("observing", str(observes))
    row.note("rounds of the newcomer", len(rounds(job)))
    row.holds("goes on", [])


def rounds(job: Job) -> list[object]:
    return [record for record in job.rounds() if record.cluster == "newcomer"]
