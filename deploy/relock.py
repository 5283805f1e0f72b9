"""Rewrite the locks of jars from the requirements here: a developer's tool, never run by a user.

python -m deploy.relock
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from deploy import maven

LOCK = Path(__file__).with_name("jars.lock")
EXAMPLE_LOCK = Path(__file__).parents[1] / "examples" / "java-broker" / "jars.lock"

SPARK_CONNECTOR = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    # 4.2.0 is not published everywhere; 4.0.0 was tested with the 4.2.0 connector.
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
)
# Hadoop's own local file system forks a `chmod` for every file of a checkpoint.
LOCAL_FILES = ("com.globalmentor:hadoop-bare-naked-local-fs:0.1.0",)
# PySpark has the connector's other dependencies (Scala, Hadoop's client, compression).
SPARK_LACKS = ("spark-sql-kafka", "spark-token-provider", "kafka-clients", "commons-pool2")

KAFKA = (
    "org.apache.kafka:kafka_2.13:4.3.0",
    # Kafka's POM names no slf4j backend: without one the broker logs nothing.
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",
)

# Apart from the others: who runs the job needs none of these.
JAVA_BROKER = (
    "org.apache.kafka:kafka-clients:4.3.0",
    "org.slf4j:slf4j-nop:1.7.36",
    "redis.clients:jedis:7.5.3",
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        connector = maven.resolve(SPARK_CONNECTOR, scratch)
        lacking = (name for name in connector if name.split(":")[1].startswith(SPARK_LACKS))
        parts = {
            "connector": [*lacking, *LOCAL_FILES],
            "kafka": maven.resolve(KAFKA, scratch),
        }
        _write(LOCK, parts, scratch)
        _write(EXAMPLE_LOCK, {"java-broker": maven.resolve(JAVA_BROKER, scratch)}, scratch)


def _write(lock: Path, parts: Mapping[str, list[str]], scratch: Path) -> None:
    lock.write_text("\n".join(_lines(parts.items(), scratch)) + "\n", "utf-8")


def _lines(parts: Iterable[tuple[str, list[str]]], scratch: Path) -> Iterator[str]:
    yield "# Written by `python -m deploy.relock`; read by deploy/jars.py."
    for part, coordinates in parts:
        yield f"\n[{part}]"
        for coordinate in coordinates:
            content = maven.download(coordinate, scratch).read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            yield f'"{coordinate}" = {{ sha256 = "{digest}", size = {len(content)} }}'


if __name__ == "__main__":
    main()
