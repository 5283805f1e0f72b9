"""The one place that builds a SparkSession."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import nullcontext, suppress
from importlib.resources import as_file, files
from pathlib import Path
from socketserver import BaseServer
from subprocess import Popen, TimeoutExpired
from tempfile import gettempdir
from typing import Final, cast

from pyspark import SparkContext
from pyspark.sql import SparkSession

from streaming.config import SparkConfig
from streaming.logs import quieten
from streaming.sizing import Size

PARTITIONS: Final = "spark.sql.shuffle.partitions"
"""Spark's setting: the tasks of each operator."""

_ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

_CHECKPOINTS: Final = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
"""Spark's other one forks a `readlink` for every file it checks: 50 per batch on a local disk."""

_LOCAL_FILES: Final = "hadoop-bare-naked-local-fs"
"""Jar of a file system that sets modes itself; Hadoop's forks a `chmod` for it, 17 per batch."""

_WORKERS: Final = "streaming.query.workers"
"""Python workers fork from this module: with Spark's own they spent most of their time in `gc`."""

_BOUNDED: Final = {
    "spark.sql.execution.arrow.maxBytesPerBatch": str(4 << 20),
    "spark.sql.execution.arrow.transformWithStateInPySpark.maxStateRecordsPerBatch": "64",
}
"""Bounds each message between the JVM and its workers to a few MiB. Spark's own bounds are 10,000
reports, or snapshots of 20 kB: a driver of 1 GiB does not survive them."""

_UNCHECKED: Final = {
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "false",
}
"""Spark hashes each row that it shuffles if either is true, to find tasks that do not repeat their
output. Ours do: it follows from the offsets that they read."""

_INTERPRETED: Final = {"spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Spark writes code for each projection that it makes, before it looks whether it has compiled the
same. It makes hundreds in a batch: for each operator's timers again with each rule of the planner,
and for each task's state. Ours convert few rows. Stages are compiled all the same."""

_VERBOSE: Final = "-Dtrimtab.spark=warn -Dtrimtab.frames=5"
"""Values that streaming/log4j2.properties reads."""

_JVM: Final = (
    # Spark matches a failed batch's whole traceback against a recursive pattern.
    "-Xss16m "
    # Without memory a thread ends, and a worker waits for that thread for ever.
    "-XX:+ExitOnOutOfMemoryError "
    # An object larger than half a region, as messages and pages of state are, is kept apart until
    # the collector has marked the whole heap. Regions are of 1 MiB otherwise.
    "-XX:G1HeapRegionSize=8m "
    # streaming/compilers.txt: the second compiler takes a core for minutes after each start, and
    # what it makes of Spark's code is a twentieth faster. Only texts, which state is kept as, it
    # copies at ten times the speed. The first one's code needs more than its usual 48 MiB.
    "-XX:+UnlockDiagnosticVMOptions -XX:ReservedCodeCacheSize=240m "
    # The JVM says how many directives it read: to standard error, where chatter is left out.
    "-XX:+DisplayVMOutputToStderr"
)

_JAVA: Final = "spark.driver.extraJavaOptions"
_LOCAL_DIR: Final = "spark.local.dir"
_SOCKET_DIR: Final = "spark.python.unix.domain.socket.dir"

_OUT_OF_MEMORY: Final = 3
"""Exit code of a JVM with the option ExitOnOutOfMemoryError."""
_END_SECONDS: Final = 5.0
"""Wait for a JVM to end that closed its connections, or was told to end."""


def spark_session(
    config: SparkConfig,
    name: str = "trimtab",
    *,
    folder: Path | None = None,
    verbose: bool = False,
) -> SparkSession:
    """Build a session on loopback with RocksDB state and this interpreter for its workers.

    ``folder``: for the working files of Spark and its JVM, unless ``config.conf`` names others;
    None: Spark's default. ``verbose``: Spark's whole log, with stack traces.
    """
    # Without these, workers may start another Python.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName(name).master(config.master)
    # Not the sockets: their paths may have a hundred characters.
    kept = {} if folder is None else {_LOCAL_DIR: str(folder), _SOCKET_DIR: gettempdir()}
    for key, value in (kept | _conf(config)).items():
        builder = builder.config(key, value)
    package = files("streaming")
    # Read once, when the JVM starts; a running JVM keeps its settings.
    with (
        as_file(package / "log4j2.properties") as log4j,
        as_file(package / "compilers.txt") as compilers,
    ):
        read = (
            f'-Dlog4j2.configurationFile={log4j.as_uri()} "-XX:CompilerDirectivesFile={compilers}"'
        )
        there = "" if folder is None else f"-Djava.io.tmpdir={folder}"
        java = f"{_JVM} {there} {read} {config.conf.get(_JAVA, '')}"
        builder = builder.config(_JAVA, f"{_VERBOSE if verbose else ''} {java}".strip())
        with nullcontext() if verbose else quieten():
            session = builder.getOrCreate()
    if not verbose:
        _silence_accumulators(session)
    return session


def _conf(config: SparkConfig) -> dict[str, str]:
    """Spark's settings by name; those of ``config.conf`` come last."""
    return {
        "spark.jars": ",".join(str(jar) for jar in config.jars),
        "spark.driver.memory": config.driver_memory or Size().heap,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        PARTITIONS: str(config.shuffle_partitions),
        "spark.sql.streaming.stateStore.providerClass": _ROCKSDB,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # Enough for a restart or a replay; the default is a hundred batches.
        "spark.sql.streaming.minBatchesToRetain": "10",
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.redaction.regex": "(?i)secret|password|token|redis.url|sasl",
        "spark.sql.streaming.checkpointFileManagerClass": _CHECKPOINTS,
        "spark.python.daemon.module": _WORKERS,
        **_BOUNDED,
        **_UNCHECKED,
        **_INTERPRETED,
        # Workers ask the JVM for each key's state: a Unix socket needs two thirds of TCP's time.
        "spark.python.unix.domain.socket.enabled": "true",
        **_local_files(config),
        **config.conf,
    }


def _silence_accumulators(session: SparkSession) -> None:
    """Print no stack trace when the JVM is gone: the query runner reports that."""
    server = cast(BaseServer, session.sparkContext._accumulatorServer)
    # socketserver prints it, and offers no other way to leave it out.
    server.handle_error = lambda *_: None  # type: ignore[method-assign]


def jvm_process() -> Popen[bytes] | None:
    """The process of Spark's JVM, whether it runs or has ended; None before it was started."""
    process: Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    return process


def stop_jvm() -> None:
    """End Spark's JVM, if there is one, and wait until it has deleted its working files."""
    process = jvm_process()
    if process is None or process.stdin is None:
        return
    # A call under way fails now, which py4j would tell with its traceback.
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    # It ends where its standard input does.
    with suppress(OSError, TimeoutExpired):
        process.stdin.close()
        process.wait(_END_SECONDS)


def jvm_end(error: Exception) -> str:
    """Why the JVM is gone, in words for the log; ``error`` is what a call to it raised."""
    process = jvm_process()
    try:
        code = None if process is None else process.wait(_END_SECONDS)
    except TimeoutExpired:
        code = None
    if code == _OUT_OF_MEMORY:
        return "Spark's JVM ran out of memory: set `size` to what the fleet has, or a larger one"
    return f"Spark's JVM is gone: {error}"


def _local_files(config: SparkConfig) -> dict[str, str]:
    """Use the file system that forks less if driver and executors share this machine's disk."""
    jars = [str(jar) for jar in config.jars if jar.name.startswith(_LOCAL_FILES)]
    if not jars or not config.master.startswith("local"):
        return {}
    return {
        "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
        # On the class path before spark.jars: Spark reads those through this file system.
        "spark.driver.extraClassPath": jars[0],
        "spark.executor.extraClassPath": jars[0],
    }
