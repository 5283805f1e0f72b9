"""`trimtab clusters` and `trimtab status`: which there are, and whether they are well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from admin.exit_codes import FINDINGS, OK
from admin.output import Shown, moment, text
from admin.session import Session
from admin.verbs import reads
from control.health import Grade

cluster_commands = typer.Typer(help="The clusters that jobs balance.", no_args_is_help=True)

_COLUMNS: Final = {"cluster": text, "grade": text, "at": moment, "headline": text}
_STYLES: Final[Mapping[str, str]] = {"well": "green", Grade.LOOK: "yellow", Grade.ACT: "red"}


@cluster_commands.command("list")
@reads
def list_clusters(session: Session) -> Shown:
    """List the clusters that had rounds recently."""
    found = session.ask("GET", "/clusters")
    return Shown(found, found, _COLUMNS)


@reads
def status(
    session: Session, name: Annotated[str, typer.Argument(help="Only this cluster.")] = ""
) -> Shown:
    """Say whether clusters are well, and what to type if not; exit code 6 if a person must act."""
    wanted = name or session.asked_cluster
    if wanted:
        session.asked_cluster = wanted
        found = [session.get("")]
    else:
        found = session.ask("GET", "/clusters")
    if not found:
        none = Text("no round of any cluster is recorded\n        Next: trimtab job")
        return Shown([], [], _COLUMNS, lines=[none], code=FINDINGS)
    must = any(each["grade"] == Grade.ACT for each in found)
    lines = [*list_findings(sorted(found, key=lambda each: str(each["cluster"])))]
    return Shown(found, found, _COLUMNS, lines=lines, code=FINDINGS if must else OK)


def list_findings(states: Sequence[Mapping[str, Any]]) -> Iterator[Text]:
    """What `trimtab status` prints. What to type stands on a line of its own, to be copied."""
    for each in states:
        yield _line("", each["grade"], f"{each['cluster']}: {each['headline']}")
        for finding in each["findings"]:
            yield _line("  ", finding["grade"], finding["what"])
            if finding["next"]:
                yield Text(f"        Next: {finding['next']}")


def _line(indent: str, grade: str, what: str) -> Text:
    return Text.assemble(indent, (grade, _STYLES[grade]), f"  {what}")
