"""Ended bundles of each open cluster are forgotten; where it fails, it is tried again later."""

from __future__ import annotations

from sinks.errors import Closed, SinkError
from sinks.exposition import Exposition
from sinks.redis.pruning import KEPT_MS, Pruner
from sinks.redis.server.connections import redis_client
from streaming.watch.pruning import Pruning


class Script(Pruner):
    """Finds as many ended bundles as it is told, or fails."""

    def __init__(self, found: dict[str, int | SinkError]) -> None:
        super().__init__(redis_client("redis://127.0.0.1:1/0"))
        self.found = found
        self.asked: list[tuple[str, int, int]] = []

    def prune(self, cluster: str, generation: int, kept_ms: int = KEPT_MS) -> int:
        self.asked.append((cluster, generation, kept_ms))
        found = self.found[cluster]
        if isinstance(found, SinkError):
            raise found
        return found

    def forget_sessions(self, cluster: str, generation: int) -> int:  # noqa: ARG002 - as it
        return 0


def test_one_cluster_that_cannot_be_pruned_keeps_no_other_from_it() -> None:
    script, shown = Script({"closed": Closed("not now"), "open": 3}), Exposition()
    pruning = Pruning(script, lambda: ("closed", "open"), lambda: 7, shown)
    pruning.look()
    pruning.look()
    total = shown.registry.get_sample_value("trimtab_pruned_records_total", {"cluster": "open"})
    assert total == 6
    assert script.asked[1] == ("open", 7, KEPT_MS)
