"""A topic full of load reports, and the type that Spark's own JSON reader needs for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, get_args, get_origin

import msgspec
import numpy as np
from confluent_kafka import Producer

from simulation.load_model import LoadModel, load_model
from simulation.profile import Profile
from trimtab.wire import keys
from trimtab.wire.reports.load_report import LocalBrokerData, encode

CLUSTER: Final = "bench"

_SQL: Final = {float: "double", int: "bigint", bool: "boolean", str: "string"}


def reports(
    brokers: int, bundles: int, each: int, seed: int = 1
) -> Iterator[tuple[str, int, LocalBrokerData]]:
    """``each`` reports of every broker with its sequence number, in turn as a fleet sends them.

    Every broker has ``bundles`` bundles, and every figure of a report is new.
    """
    model = load_model(_profile(brokers, bundles, seed))
    rng = np.random.default_rng(seed)
    owned = [model.bundles[i * bundles : (i + 1) * bundles] for i in range(brokers)]
    for sequence in range(1, each + 1):
        for broker, names in zip(model.brokers, owned, strict=True):
            yield broker, sequence, _report(model, broker, names, rng)


def _profile(brokers: int, bundles: int, seed: int) -> Profile:
    # 16 bundles a namespace, as a Pulsar operator would have it.
    count = brokers * bundles
    return Profile(brokers=brokers, bundles=count, namespaces=-(-count // 16), seed=seed)


def _report(
    model: LoadModel, broker: str, names: tuple[str, ...], rng: np.random.Generator
) -> LocalBrokerData:
    data = model.report(broker, names, now_ms=1_800_000_000_000, rng=rng)
    data.start_timestamp = 1_800_000_000_000
    return data


def fill(bootstrap: str, brokers: int, bundles: int, each: int) -> None:
    """Publish the reports."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "acks": "all"})
    for broker, sequence, data in reports(brokers, bundles, each):
        value = encode(data)
        headers: list[tuple[str, str | bytes | None]] = [
            (keys.SESSION_HEADER, str(data.start_timestamp).encode()),
            (keys.SEQUENCE_HEADER, str(sequence).encode()),
        ]
        while True:
            try:
                key = f"{CLUSTER}/{broker}".encode()
                producer.produce(keys.LOAD_REPORTS, value, key, headers=headers)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


def sql_type(kind: Any = LocalBrokerData) -> str:
    """The report's type as Spark's DDL writes it."""
    options = [option for option in get_args(kind) if option is not type(None)]
    match get_origin(kind):
        case None if kind in _SQL:
            return _SQL[kind]
        case None:
            members = (f"{f.encode_name}: {sql_type(f.type)}" for f in msgspec.structs.fields(kind))
            return f"struct<{', '.join(members)}>"
        case origin if origin is dict:
            return f"map<{sql_type(options[0])}, {sql_type(options[1])}>"
        case origin if origin is list:
            return f"array<{sql_type(options[0])}>"
        case _:
            return sql_type(options[0])
