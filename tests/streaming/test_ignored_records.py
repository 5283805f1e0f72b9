"""An operator reads which records are ignored, and is not drowned in them."""

from __future__ import annotations

from structlog.testing import capture_logs

from sinks.exposition import Exposition
from streaming.metrics.ignored_records import tell_ignored


def test_of_many_records_all_are_counted_and_the_first_few_named() -> None:
    shown = Exposition()
    with capture_logs() as lines:
        tell_ignored(shown, "c", "store", "the store", {f"b{n}": "damaged" for n in range(9)})
    [line] = lines
    assert line["number"] == 9
    assert line["first"] == [f"b{n}: damaged" for n in range(5)]
    labels = {"cluster": "c", "source": "store"}
    assert shown.registry.get_sample_value("trimtab_ignored_records_total", labels) == 9
