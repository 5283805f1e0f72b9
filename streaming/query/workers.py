"""Where Spark's Python workers fork from: what all of them need is imported once and left alone.

Spark starts it as ``python -m streaming.query.workers``. After every task a worker collects
garbage; with everything that pyarrow, numpy and pyspark brought that took 40 ms of a core, and
frozen objects are not looked at. Forked workers also share these pages.
"""

from __future__ import annotations

import gc
import importlib
from typing import Final

from pyspark import daemon

_SHARED: Final = (
    "pyarrow.ipc",
    "pyspark.worker",
    "pyspark.sql.streaming.stateful_processor_api_client",
    "streaming.query.broker_operator",
    "streaming.query.cluster_operator",
)

if __name__ == "__main__":
    for name in _SHARED:
        importlib.import_module(name)
    gc.freeze()
    daemon.manager()
