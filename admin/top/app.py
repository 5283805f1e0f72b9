"""The screen: how the cluster is, its brokers by usage, and what rounds decided."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

import httpx2
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import DataTable, Footer, Static

from admin.commands.clusters import list_findings
from admin.output import moment
from admin.session import Refusal
from admin.top.looking import Look, Seen
from admin.top.picture import bar, share, spark

_ERRORS: Final = (Refusal, httpx2.TransportError, OSError)
"""What a look raises while the API, Kafka or Redis is away."""


class Explanation(ModalScreen[None]):
    """Why, over the screen; any of its keys closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [("escape,enter,q", "dismiss", "back")]
    CSS = """
    Explanation { align: center middle; }
    #why { width: 90%; max-width: 120; height: auto; max-height: 80%; padding: 1 2;
           border: round $accent; background: $surface; }
    """

    def __init__(self, told: Text) -> None:
        super().__init__()
        self._told = told

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="why"):
            yield Static(self._told)


class Top(App[None]):
    """Looks every so many seconds; the looks run in a thread of their own, one at a time."""

    TITLE = "trimtab top"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        ("q", "quit", "quit"),
        ("tab", "app.focus_next", "brokers / decisions"),
    ]
    CSS = """
    #status { padding: 0 1; height: auto; max-height: 40%; }
    #away { padding: 0 1; background: $error; color: $text; display: none; }
    #brokers { height: 2fr; }
    #decisions { height: 1fr; border-top: solid $accent; }
    .old { opacity: 50%; }
    """

    def __init__(self, look: Look, every_s: float) -> None:
        super().__init__()
        self._look = look
        self._every_s = every_s
        self._looking = threading.Lock()
        self._away_since: float | None = None

    def compose(self) -> ComposeResult:
        yield Static("looking", id="status")
        yield Static(id="away")
        yield DataTable(id="brokers", cursor_type="row")
        yield DataTable(id="decisions", cursor_type="row")
        yield Footer()

    def on_mount(self) -> None:
        self.query_one("#brokers", DataTable).add_columns(
            "broker", "usage", "now", "average", "bundles", "state", "last rounds"
        )
        self.query_one("#decisions", DataTable).add_columns(
            "round", "at", "what", "bundle", "from", "to", "because"
        )
        self.set_interval(self._every_s, self._begin)
        self._begin()

    def _begin(self) -> None:
        """Look, unless the last look is still under way."""
        if self._looking.acquire(blocking=False):
            self.run_worker(self._look_once, thread=True)

    def _look_once(self) -> None:
        try:
            seen = self._look.again()
        except _ERRORS as error:
            self.call_from_thread(self._show_away, error)
        else:
            self.call_from_thread(self._show, seen)
        finally:
            self._looking.release()

    def _show_away(self, error: Exception) -> None:
        """Keep what is on the screen, and say that it is old."""
        self._away_since = self._away_since or time.time()
        away = self.query_one("#away", Static)
        away.update(Text(f"no answer since {moment(round(1000 * self._away_since))}: {error}"))
        away.display = True
        self._for_each_part(lambda part: part.add_class("old"))

    def _show(self, seen: Seen) -> None:
        self._away_since = None
        self.query_one("#away").display = False
        self._for_each_part(lambda part: part.remove_class("old"))
        lines = [*list_findings([seen.overview])]
        self.query_one("#status", Static).update(Text("\n").join(lines))
        _fill(self.query_one("#brokers", DataTable), _broker_rows(seen))
        decided = {str(place): _decided(each) for place, each in enumerate(seen.decisions)}
        _fill(self.query_one("#decisions", DataTable), decided)

    def _for_each_part(self, change: Callable[[DataTable[Any] | Static], object]) -> None:
        for part in self.query("#status, #brokers, #decisions"):
            assert isinstance(part, DataTable | Static)
            change(part)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Explain the broker or bundle of the row."""
        column = 0 if event.data_table.id == "brokers" else 3
        subject = str(event.data_table.get_row(event.row_key)[column])
        self.run_worker(lambda: self._explain(subject), thread=True)

    def _explain(self, subject: str) -> None:
        try:
            told = _told(self._look.explain(subject)["explanation"])
        except _ERRORS as error:
            told = Text(str(error))
        self.call_from_thread(self.push_screen, Explanation(told))


def _broker_rows(seen: Seen) -> dict[str, tuple[str | Text, ...]]:
    rows: dict[str, tuple[str | Text, ...]] = {}
    for each in seen.brokers:
        name = each["broker"]
        rows[name] = (
            Text(name),
            bar(each["usage"], seen.overloaded),
            share(each["usage"]),
            share(each["average"]),
            Text(f"{each['bundles']:,}", justify="right"),
            each["state"],
            spark(each["history"]),
        )
    if seen.more:
        rows[""] = (Text("and more: trimtab brokers list --limit 1000", style="dim"),)
    return rows


def _decided(each: Mapping[str, Any]) -> tuple[str | Text, ...]:
    return (
        str(each["round"]),
        moment(each["at"]),
        each["decision"],
        Text(each["bundle"]),
        Text(each.get("source") or each.get("broker") or ""),
        Text(each.get("destination") or each.get("neighbour") or ""),
        each.get("reason") or each.get("rule") or "",
    )


def _told(explanation: Mapping[str, Any]) -> Text:
    """An explanation's sentences, as `trimtab why` begins."""
    named = "{subject} in round {round}: {verdict}, {rule}".format_map(explanation)
    advice = explanation.get("advice") or ""
    return Text("\n\n").join(Text(line) for line in (named, explanation["why"], advice) if line)


def _fill(table: DataTable[Any], rows: Mapping[str, tuple[str | Text, ...]]) -> None:
    """Show these rows; the cursor stays on the row that it was on, if that is still there."""
    chosen = (
        table.coordinate_to_cell_key(table.cursor_coordinate).row_key if table.row_count else None
    )
    table.clear()
    for key, cells in rows.items():
        table.add_row(*cells, key=key)
    if chosen is not None and chosen.value in rows:
        table.move_cursor(row=table.get_row_index(chosen))
