"""The daemon that Spark's Python workers fork from: it imports their modules once and freezes them.

Spark starts it as ``python -m streaming.query.workers``. After every task a worker collects
garbage; over the objects of pandas, pyarrow, numpy and pyspark that took 40 ms of a core. The
collector skips frozen objects. Forked workers also share these pages, and start a second sooner.
"""

from __future__ import annotations

import gc
import importlib
from typing import Final

from pyspark import daemon

_SHARED: Final = (
    # All but ours: pyspark would import them when a task first needs them.
    "pandas",
    "pyarrow.compute",
    "pyarrow.ipc",
    "pyarrow.pandas_compat",
    "pyspark.worker",
    "pyspark.sql.streaming.proto.StateMessage_pb2",
    "pyspark.sql.streaming.stateful_processor_api_client",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.testing",
    "streaming.query.broker_operator",
    "streaming.query.cluster_operator",
    "streaming.query.reports.source",
)

if __name__ == "__main__":
    for name in _SHARED:
        importlib.import_module(name)
    gc.freeze()
    daemon.manager()
