"""Pulsar's load report (`LocalBrokerData`), as brokers write it.

The JSON is what ``GET /admin/v2/broker-stats/load-report`` serves. Unknown members are ignored.
`trimtab.wire.reports` checks and decodes it.
"""

from __future__ import annotations

from typing import Final

import msgspec

UNKNOWN: Final = -1.0
"""The value that Pulsar reports for a resource it cannot read."""


class Resource(msgspec.Struct, gc=False):
    """``usage`` and ``limit`` in the resource's own unit; -1 means unknown."""

    usage: float
    limit: float


UNKNOWN_RESOURCE: Final = Resource(UNKNOWN, UNKNOWN)
"""A resource that a broker cannot read, or a report does not name."""


class BundleStats(msgspec.Struct, gc=False, rename="camel"):
    """Pulsar's ``NamespaceBundleStats``: messages/s, bytes/s, counts."""

    msg_rate_in: float = 0.0
    msg_rate_out: float = 0.0
    msg_throughput_in: float = 0.0
    msg_throughput_out: float = 0.0
    topics: int = 0
    consumer_count: int = 0
    producer_count: int = 0
    cache_size: int = 0


class LocalBrokerData(msgspec.Struct, rename="camel"):
    """A broker's load report, with Pulsar's names."""

    cpu: Resource = msgspec.field(default_factory=lambda: UNKNOWN_RESOURCE)
    memory: Resource = msgspec.field(default_factory=lambda: UNKNOWN_RESOURCE)
    direct_memory: Resource = msgspec.field(default_factory=lambda: UNKNOWN_RESOURCE)
    bandwidth_in: Resource = msgspec.field(default_factory=lambda: UNKNOWN_RESOURCE)
    bandwidth_out: Resource = msgspec.field(default_factory=lambda: UNKNOWN_RESOURCE)
    msg_rate_in: float = 0.0
    msg_rate_out: float = 0.0
    msg_throughput_in: float = 0.0
    msg_throughput_out: float = 0.0
    last_stats: dict[str, BundleStats] | msgspec.UnsetType | None = msgspec.UNSET
    """Unset (or null) makes the report a heartbeat."""
    bundles: list[str] = []
    num_topics: int = 0
    num_bundles: int = 0
    num_consumers: int = 0
    num_producers: int = 0
    last_update: int = 0
    start_timestamp: int = 0
    web_service_url: str | None = ""
    """Null, like the other URLs, where the broker does not listen so."""
    web_service_url_tls: str | None = ""
    pulsar_service_url: str | None = ""
    pulsar_service_url_tls: str | None = ""
    persistent_topics_enabled: bool = True
    non_persistent_topics_enabled: bool = True
    broker_version_string: str = ""
    load_manager_class_name: str = ""
    max_resource_usage: float = 0.0
    load_report_type: str = "LocalBrokerData"


_ENCODER: Final = msgspec.json.Encoder()


def encode(report: LocalBrokerData) -> bytes:
    """Encode the JSON that a Pulsar broker would serve."""
    return _ENCODER.encode(report)
