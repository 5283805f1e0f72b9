"""Writes the plain manifests of deploy/kubernetes: the chart with its defaults, and Kafka's topics.

    python -m deploy.manifests

For who has no Helm: edit a copy, or make a Kustomize base of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from deploy.chart import CHART, render_chart
from sinks.kafka.topic_rules import POLICY, RETENTION, UNCLEAN, Topic, choose_replication
from sinks.kafka.topics import TOPICS

FOLDER: Final = Path(__file__).parent / "kubernetes"

_RELEASE: Final = "trimtab"
_KAFKAS_BROKERS: Final = 3
_WEEK_MS: Final = 7 * 24 * 3_600_000
"""Kafka's own default; what is kept can be replayed."""

_MANIFESTS: Final = {
    "config.yaml": "",
    "checkpoint.yaml": "",
    "job.yaml": "",
    "api.yaml": "",
    "network-policy.yaml": "",
    "spark-operator/spark-application.yaml": "spark",
    "brokers/brokers.yaml": "brokers",
}
"""By file: the values in the chart's folder ci that it is rendered with; "" for the defaults. What
`kubectl apply -f deploy/kubernetes` must not start is in folders of its own."""


def manifests() -> Iterator[tuple[str, str]]:
    """Each file below deploy/kubernetes, and its text."""
    for file, name in _MANIFESTS.items():
        head = "# Made by `python -m deploy.manifests` from the chart in deploy/helm/trimtab.\n"
        text = render_chart(values_of(name), _RELEASE)[Path(file).name]
        yield file, head + text.strip() + "\n"
    head = "# Made by `python -m deploy.manifests` from sinks/kafka/topics.py.\n"
    topics = [kafka_topic(topic, _KAFKAS_BROKERS) for topic in TOPICS]
    yield "kafka-topics/topics.yaml", head + yaml.safe_dump_all(topics, sort_keys=False)


def values_of(name: str) -> Mapping[str, Any]:
    """The values of that name in the chart's folder ci; none for ""."""
    if not name:
        return {}
    file = CHART / "ci" / f"{name}-values.yaml"
    found: Mapping[str, Any] = yaml.safe_load(file.read_text("utf-8"))
    return found


def kafka_topic(topic: Topic, brokers: int) -> dict[str, Any]:
    """A topic as Strimzi's operator takes it, for a Kafka with that many brokers."""
    replicas, safety = choose_replication(brokers)
    config = {**safety, **topic.needs, **topic.config}
    if POLICY not in topic.needs:
        config |= {POLICY: "delete", RETENTION: str(max(topic.keeps_ms, _WEEK_MS))}
    if topic.vital:
        config[UNCLEAN] = "false"
    return {
        "apiVersion": "kafka.strimzi.io/v1beta2",
        "kind": "KafkaTopic",
        "metadata": {"name": topic.name, "labels": {"strimzi.io/cluster": "kafka"}},
        "spec": {"partitions": topic.partitions, "replicas": replicas, "config": config},
    }


if __name__ == "__main__":
    for name, text in manifests():
        file = FOLDER / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
