"""What must hold of everything a job has left behind, whatever happened to it."""

from __future__ import annotations

from collections import defaultdict
from functools import partial

import redis

from simulation.replay.batches import Replay, distinct, rounds_of
from simulation.replay.recorded import RecordedTopics
from simulation.replay.run import Readers
from streaming.config import JobConfig
from tests.support.commands import changes, in_streams, published, sent
from trimtab.ownership import Event
from trimtab.store.requests import is_of_a_broker
from trimtab.wire import keys
from trimtab.wire.ownership import Record
from trimtab.wire.rounds import RoundRecord


def replayed(topics: RecordedTopics, config: JobConfig, query: str) -> Replay:
    """An undisturbed run fed the query's recorded batches: it decided and remembered the same."""
    replay = Replay(config.intake_settings(), config.round_settings())
    # One for each partition: a single one would begin again with each batch.
    with Readers(partial(RecordedTopics, config.kafka.bootstrap)) as readers:
        for batch in distinct(topics.batches()):
            if batch.query == query:
                again = rounds_of(replay.run(batch.at, readers.read_by(batch)))
                then = {record.cluster: record for record in batch.rounds}
                assert again == then, f"batch {batch.batch}: {_differences(then, again)}"
    return replay


def _differences(then: dict[str, RoundRecord], again: dict[str, RoundRecord]) -> str:
    """Cluster and member of every record, with what was said then and what is said now."""
    if then.keys() != again.keys():
        return f"rounds of {sorted(then)}, now of {sorted(again)}"
    return "; ".join(
        f"{name}.{member}: {was!r}, now {now!r}"
        for name in then
        for member in RoundRecord.__struct_fields__
        if (was := getattr(then[name], member)) != (now := getattr(again[name], member))
    )


def assert_nothing_was_done_twice(
    topics: RecordedTopics, client: redis.Redis, cluster: str
) -> None:
    """Each command was put into its stream once, and all of them on Kafka; epochs only grow.

    Of a fleet without lookups.
    """
    copies = {c.id: c for c in published(topics.all(keys.COMMANDS)) if c.cluster == cluster}
    left = [each for each in in_streams(client, cluster) if each.id.count("/") == _PARTS]
    assert left == [copies.get(each.id) for each in left]
    journalled = changes(topics.all(keys.OWNERSHIP), cluster)
    handed_over = {c.record.by for c in journalled if c.event is Event.HAND_OVER}
    # A broker that hands a bundle over tells its next owner.
    assert sum(is_of_a_broker(each) for each in copies) == len(handed_over)
    assert sent(client, cluster) == len(copies)

    journal: dict[str, list[Record]] = defaultdict(list)
    for change in journalled:
        # The relay may repeat what it carried last; it never goes back.
        known = journal[change.bundle]
        if change.record not in known[-_PAGE:]:
            known.append(change.record)
    for bundle, records in journal.items():
        epochs = [record.epoch for record in records]
        assert epochs == sorted(set(epochs)), bundle


_PARTS = 4
"""Slashes in the id of a command of the job: cluster, query, batch, number, kind."""

_PAGE = 1000
"""Entries that the relay carries at once, and so may repeat."""
