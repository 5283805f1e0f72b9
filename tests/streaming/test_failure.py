"""Of Spark's account of a failed query the line that says why is kept."""

from __future__ import annotations

from streaming.failure import after_vain_attempts, cause_of, drop_frames

NESTED = """\
[STREAM_FAILED] Query [id = c5, runId = 9a] terminated with exception: An error occurred
  File "streaming/query/batch.py", line 63, in __call__
    rows = frame.collect()
           ^^^^^^^^^^^^^^^
pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the worker:
Traceback (most recent call last):
  File "streaming/query/state.py", line 21, in payload_of
    raise ForeignCheckpoint(
streaming.query.state.ForeignCheckpoint: the checkpoint holds snapshots of schema 99, this job of 1

=== Streaming Query ===
Identifier: trimtab [id = c5, runId = 9a]
"""


def test_the_innermost_exception_is_the_cause() -> None:
    assert cause_of(NESTED) == (
        "streaming.query.state.ForeignCheckpoint: the checkpoint holds snapshots of schema 99, "
        "this job of 1"
    )


def test_one_line_is_its_own_cause() -> None:
    assert cause_of("Job aborted") == "Job aborted"
    assert cause_of("") == ""


def test_a_worker_that_spark_did_not_wait_for_names_the_machine_as_the_cause() -> None:
    said = (
        "[STREAM_FAILED] Query [id = c5, runId = 9a] terminated with exception: "
        "Python worker failed to connect back. SQLSTATE: XXKST"
    )
    assert cause_of(said) == (
        "Python worker failed to connect back: Spark gives one 10 s; the machine is too busy, or "
        "the worker's error stands above. SQLSTATE: XXKST"
    )


def test_a_query_that_never_did_a_batch_is_given_up_with_the_advice_that_its_cause_gives() -> None:
    late, other = "Python worker failed to connect back: ...", "Job aborted"
    assert after_vain_attempts(5, late, "start over") == (
        f"no batch was done in 5 attempts ({late}); give it more of a processor"
    )
    assert after_vain_attempts(5, other, "start over").endswith("(Job aborted); start over")


def test_of_a_jvms_account_only_the_exceptions_are_kept() -> None:
    account = (
        "An error occurred while calling o1031.collectToPython.\n"
        ": org.apache.spark.SparkException: Job aborted\n"
        "\tat org.apache.spark.SparkContext.runJob(SparkContext.scala:2496)\n"
        "Caused by: java.io.IOException: Corruption: block checksum mismatch\n"
        "\tat org.rocksdb.RocksDB.open(Native Method)\n"
        "\t... 12 more\n"
    )
    assert drop_frames(account).splitlines() == [
        "An error occurred while calling o1031.collectToPython.",
        ": org.apache.spark.SparkException: Job aborted",
        "Caused by: java.io.IOException: Corruption: block checksum mismatch",
    ]
