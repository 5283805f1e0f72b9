"""Rewrite jars.lock from the jars named here: a developer's tool, never run by a user.

python -m benchmarks.peer.relock
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from deploy import maven

LOCK: Final = Path(__file__).with_name("jars.lock")

# A broker needs some 300 jars. These are the ones whose classes the shedders load, found by leaving
# out one after another; slf4j-nop keeps Pulsar's log out of the timings.
JARS: Final = (
    *(
        f"org.apache.pulsar:{artifact}:4.0.8"
        for artifact in (
            "managed-ledger",
            "pulsar-broker",
            "pulsar-broker-common",
            "pulsar-client-admin-api",
            "pulsar-client-api",
            "pulsar-client-original",
            "pulsar-common",
            "pulsar-metadata",
            "pulsar-package-core",
        )
    ),
    "com.fasterxml.jackson.core:jackson-annotations:2.17.2",
    "com.fasterxml.jackson.core:jackson-core:2.17.2",
    "com.fasterxml.jackson.core:jackson-databind:2.17.2",
    "com.google.guava:failureaccess:1.0.1",
    "com.google.guava:guava:32.1.2-jre",
    "io.netty:netty-common:4.1.128.Final",
    "io.opentelemetry:opentelemetry-api:1.45.0",
    "io.prometheus:simpleclient:0.16.0",
    "javax.servlet:javax.servlet-api:3.1.0",
    "org.apache.bookkeeper:bookkeeper-server:4.17.2",
    "org.apache.commons:commons-lang3:3.18.0",
    "org.slf4j:slf4j-api:2.0.13",
    "org.slf4j:slf4j-nop:2.0.13",
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        LOCK.write_text("\n".join(_lines(Path(folder))) + "\n", "utf-8")


def _lines(scratch: Path) -> Iterator[str]:
    yield "# Written by `python -m benchmarks.peer.relock`; read by benchmarks/peer/class_path.py."
    for coordinate in JARS:
        content = maven.download(coordinate, scratch).read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        yield f'"{coordinate}" = {{ sha256 = "{digest}", size = {len(content)} }}'


if __name__ == "__main__":
    main()
