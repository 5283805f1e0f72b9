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
ROOT = Path(__file__).parents[1]
EXAMPLE_LOCK = ROOT / "examples" / "java-broker" / "jars.lock"
ADMIN_LOCK = ROOT / "tests" / "e2e" / "pulsar_admin" / "jars.lock"

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

# Named one by one: the POM of pulsar-client-tools asks for 130, and leaves versions to its parent.
# These are those whose classes pulsar-admin loads, TLS included.
PULSAR_ADMIN = (
    *(
        f"org.apache.pulsar:{artifact}:4.0.8"
        for artifact in (
            "pulsar-cli-utils",
            "pulsar-client-admin-api",
            "pulsar-client-admin-original",
            "pulsar-client-api",
            "pulsar-client-original",
            "pulsar-client-tools",
            "pulsar-client-tools-api",
            "pulsar-common",
        )
    ),
    *(
        f"com.fasterxml.jackson.{artifact}:2.17.2"
        for artifact in (
            "core:jackson-annotations",
            "core:jackson-core",
            "core:jackson-databind",
            "dataformat:jackson-dataformat-yaml",
            "datatype:jackson-datatype-jdk8",
            "datatype:jackson-datatype-jsr310",
            "module:jackson-module-jaxb-annotations",
            "module:jackson-module-parameter-names",
        )
    ),
    *(
        f"org.glassfish.jersey.{artifact}:2.42"
        for artifact in (
            "core:jersey-client",
            "core:jersey-common",
            "ext:jersey-entity-filtering",
            "inject:jersey-hk2",
            "media:jersey-media-json-jackson",
            "media:jersey-media-multipart",
        )
    ),
    *(
        f"org.glassfish.hk2{artifact}:2.6.1"
        for artifact in (":hk2-api", ":hk2-locator", ":hk2-utils", ".external:jakarta.inject")
    ),
    *(
        f"io.netty:netty-{artifact}:4.1.128.Final"
        for artifact in (
            "buffer",
            "codec",
            "codec-http",
            "common",
            "handler",
            "resolver",
            "transport",
            "transport-native-unix-common",
        )
    ),
    "com.google.code.gson:gson:2.8.9",
    "com.google.guava:failureaccess:1.0.1",
    "com.google.guava:guava:32.1.2-jre",
    "com.spotify:completable-futures:0.3.6",
    "com.sun.activation:jakarta.activation:1.2.2",
    "com.typesafe.netty:netty-reactive-streams:2.0.6",
    "info.picocli:picocli:4.7.5",
    "io.swagger:swagger-annotations:1.6.2",
    "jakarta.annotation:jakarta.annotation-api:1.3.5",
    "jakarta.ws.rs:jakarta.ws.rs-api:2.1.6",
    "jakarta.xml.bind:jakarta.xml.bind-api:2.3.3",
    "org.apache.commons:commons-lang3:3.18.0",
    "org.asynchttpclient:async-http-client:2.12.4",
    "org.asynchttpclient:async-http-client-netty-utils:2.12.4",
    "org.bouncycastle:bcprov-jdk18on:1.78.1",
    "org.glassfish.hk2:osgi-resource-locator:1.0.3",
    "org.jvnet.mimepull:mimepull:1.9.15",
    "org.reactivestreams:reactive-streams:1.0.3",
    "org.slf4j:slf4j-api:2.0.13",
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
        _write(ADMIN_LOCK, {"pulsar-admin": sorted(PULSAR_ADMIN)}, scratch)


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
