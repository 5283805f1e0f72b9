"""A checkpoint from which the job cannot continue ends it, with what to do: it does not retry
forever while it holds the claim."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame

import streaming.query_runner
from sinks.kafka.publisher import Outgoing, Publisher
from streaming.query.batch import BatchWriter
from streaming.shutdown import FAILED
from tests.support.reports import bundle
from tests.support.running import PATIENCE, Running
from tests.support.waiting import eventually
from trimtab.wire import keys
from trimtab.wire.reports.load_report import BundleStats, LocalBrokerData, encode

CLUSTER = "checkpoints"


@pytest.mark.slow
def test_a_query_that_never_gets_to_a_batch_does_not_hold_the_claim_for_ever(
    running: Running,
    publisher: Publisher,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def fail(_self: BatchWriter, _frame: DataFrame, _number: int) -> None:
        raise RuntimeError("whatever it is")

    monkeypatch.setattr(BatchWriter, "__call__", fail)
    monkeypatch.setattr(streaming.query_runner, "_LONGEST", 0.1)
    monkeypatch.setattr(streaming.query_runner, "_MOST_IN_VAIN", 3)
    with running:
        report(publisher, 1)
        eventually(lambda: running.exit_codes, "the end of the job", PATIENCE, pause=0.2)
    assert running.exit_codes == [FAILED]
    assert running.metric("trimtab_query_restarts_total") == 2
    said = capfd.readouterr()
    assert "no batch was done in 3 attempts" in said.out + said.err


def report(publisher: Publisher, sequence: int) -> None:
    stats = {bundle(0, 2): BundleStats(msg_rate_in=1.0, topics=1)}
    data = LocalBrokerData(last_stats=stats, bundles=list(stats), start_timestamp=1)
    headers = ((keys.SESSION_HEADER, b"1"), (keys.SEQUENCE_HEADER, b"%d" % sequence))
    publisher.publish([Outgoing(keys.LOAD_REPORTS, f"{CLUSTER}/a:1", encode(data), headers)])
