"""A migration of a whole cluster, as tests want one."""

from __future__ import annotations

from trimtab.migration.migration import Migration, Target
from trimtab.migration.scopes import CLUSTER

GREEN = Target(serviceUrl="http://green:8080", brokerServiceUrl="pulsar://green:6650")
RUNNING = Migration("m", "blue", CLUSTER, GREEN)
