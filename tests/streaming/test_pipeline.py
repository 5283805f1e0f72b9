"""How much a batch takes from each topic."""

from __future__ import annotations

from streaming.config import KafkaConfig
from streaming.query.pipeline import for_records, source_of


def test_a_batch_has_five_times_as_many_records_as_reports() -> None:
    source = source_of(KafkaConfig(max_offsets_per_trigger=7))
    assert source.max_offsets == 7
    assert for_records(source).max_offsets == 35
