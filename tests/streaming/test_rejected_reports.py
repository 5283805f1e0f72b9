"""An operator reads which broker said what cannot be, and is not drowned in it."""

from __future__ import annotations

from collections.abc import Iterable

from structlog.testing import capture_logs

from streaming.metrics.rejected_reports import MOST, REPEAT_MS, RejectedReportLog
from trimtab.wire import keys
from trimtab.wire.rows import DeadLetter


def letter(broker: str = "b:1", field: str = "cpu") -> DeadLetter:
    return DeadLetter(
        reason="implausible",
        detail="implausible: cpu is 1e+14 of a limit of 100",
        topic=keys.LOAD_REPORTS,
        partition=0,
        offset=1,
        key=f"c/{broker}",
        size=2,
        head="",
        field=field,
    )


def logged(log: RejectedReportLog, letters: Iterable[DeadLetter], at_ms: int = 0) -> list[str]:
    with capture_logs() as lines:
        log.tell(letters, at_ms)
    return [f"{line.get('broker')} {line.get('field')} {line.get('figures', '')}" for line in lines]


def test_a_line_names_cluster_broker_field_and_figure() -> None:
    with capture_logs() as lines:
        RejectedReportLog().tell([letter()], 0)
    assert lines == [
        {
            "event": "a load report is rejected as implausible",
            "log_level": "warning",
            "cluster": "c",
            "broker": "b:1",
            "field": "cpu",
            "cause": "implausible: cpu is 1e+14 of a limit of 100",
        }
    ]


def test_the_same_figure_of_a_broker_is_logged_again_only_after_a_while() -> None:
    log = RejectedReportLog()
    assert logged(log, [letter(), letter()]) == ["b:1 cpu "]
    assert logged(log, [letter(), letter(field="memory")], 5) == ["b:1 memory "]
    assert logged(log, [letter()], REPEAT_MS - 1) == []
    assert logged(log, [letter()], REPEAT_MS) == ["b:1 cpu "]


def test_a_clock_that_was_set_back_silences_nothing() -> None:
    log = RejectedReportLog()
    assert logged(log, [letter()], 10 * REPEAT_MS) == ["b:1 cpu "]
    assert logged(log, [letter()], 0) == ["b:1 cpu "]


def test_a_flood_is_cut_short() -> None:
    lines = logged(RejectedReportLog(), [letter(f"b:{i}") for i in range(MOST + 5)])
    assert len(lines) == MOST + 1
    assert lines[-1] == "None None 5"


def test_a_record_that_is_no_report_of_figures_is_not_logged() -> None:
    assert logged(RejectedReportLog(), [letter(field="")]) == []
