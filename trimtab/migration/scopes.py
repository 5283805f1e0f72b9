"""Scopes: which topics a migration is about.

A scope is a text: ``cluster`` for all, ``tenant/namespace``, or a topic's whole name
(``persistent://tenant/namespace/topic``). These three forms cannot be confused. A
topic's scope has its partitions (``…-partition-3``) too; none of them is a scope by itself, as a
client has one producer or consumer for all of them.
"""

from __future__ import annotations

import re
from typing import Final

from trimtab.model import is_monitoring_namespace

CLUSTER: Final = "cluster"
"""The scope that has all topics."""

_NAMESPACE: Final = re.compile(r"[-=:.\w]+/[-=:.\w]+", re.ASCII)
"""The characters of Pulsar's NamedEntity."""
_DOMAINS: Final = ("persistent", "non-persistent")
_TOPIC: Final = re.compile(r"(?:non-)?persistent://([-=:.\w]+/[-=:.\w]+)/[^/\x00-\x20\x7f]+")
_PARTITION: Final = re.compile(r"((?:non-)?persistent://.+)-partition-[0-9]+", re.DOTALL)
_SYSTEM: Final = re.compile(r"__change_events|__transaction_.*|__trimtab.*")
"""Pulsar's topics for its own use, by the last part of their name."""


def is_scope(text: str) -> bool:
    """Whether a text is one of the three forms."""
    return text == CLUSTER or bool(_NAMESPACE.fullmatch(text) or _TOPIC.fullmatch(text))


def namespace_of(scope: str) -> str:
    """The namespace of a topic, or of a scope; empty for the cluster's."""
    domain, _, rest = scope.partition("://")
    if rest and domain in _DOMAINS:
        # As `trimtab.store.lookup.parse_topic`: a topic may have any name, also one that is no
        # scope of its own.
        return "/".join(rest.split("/", 3)[:-1])
    return "" if scope == CLUSTER else scope


def whole_topic(topic: str) -> str:
    """The topic of which this is a partition; the topic itself if it is none."""
    partition = _PARTITION.fullmatch(topic)
    return partition[1] if partition else topic


def scopes_of(topic: str) -> tuple[str, ...]:
    """All scopes that have a topic, or a narrower scope."""
    return CLUSTER, topic, whole_topic(topic), namespace_of(topic)


def covers(scope: str, topic: str) -> bool:
    """Whether a topic is in a scope."""
    return scope in scopes_of(topic)


def overlap(one: str, other: str) -> bool:
    """Whether a topic can be in both scopes."""
    return covers(one, other) or covers(other, one)


def common(one: str, other: str) -> str:
    """The topics that two scopes have in common, if they overlap: the narrower one."""
    return other if covers(one, other) else one


def is_system(topic: str) -> bool:
    """Whether a topic is Pulsar's own, or a broker's heartbeat: none of them migrates."""
    whole = whole_topic(topic)
    namespace, _, name = whole.removeprefix("non-").removeprefix("persistent://").rpartition("/")
    if namespace == "pulsar/system" or is_monitoring_namespace(namespace):
        return True
    return bool(_SYSTEM.fullmatch(name))
