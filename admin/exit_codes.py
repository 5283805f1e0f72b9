"""The exit codes of all programs: one table, which `python -m admin.exit_codes` writes into
docs/cli.md."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from admin.main import INTERRUPTED
from streaming import shutdown

OK: Final = shutdown.OK
FAILED: Final = shutdown.FAILED
USAGE: Final = shutdown.USAGE
DENIED: Final = 3
FENCED: Final = shutdown.FENCED
UNREACHABLE: Final = shutdown.UNREACHABLE
FINDINGS: Final = 6
NOT_FOUND: Final = 7
REFUSED: Final = 8
UNFINISHED: Final = 9
STUCK: Final = shutdown.STUCK


class Meaning(NamedTuple):
    """What an exit code says, and whether to run the same command again."""

    what: str
    again: str


TABLE: Final[Mapping[int, Meaning]] = {
    OK: Meaning("done, or stopped as asked", "no"),
    FAILED: Meaning(
        "failed: a refused password, a port that is taken, a checkpoint that cannot be written or "
        "is not this job's, a topic that could make ownership wrong; an intent that expired; a "
        "demo whose fleet did not settle; a replay with a different result",
        "after the step that the message names",
    ),
    USAGE: Meaning(
        "wrong usage, settings or file (all problems are listed and nothing was started); a replay "
        "that cannot give a verdict",
        "after a change",
    ),
    DENIED: Meaning("the API knows no such token, or its role or tenant may not", "as another"),
    FENCED: Meaning("a newer job has taken over", "no"),
    UNREACHABLE: Meaning(
        "the API, Kafka or Redis does not answer, or Redis for longer than `yield_seconds`",
        "yes, with a pause",
    ),
    FINDINGS: Meaning(
        "`doctor`, `kafka create-topics`, `audit`, `status` or `conformance` found something",
        "after the commands that it lists",
    ),
    NOT_FOUND: Meaning(
        "there is no such cluster, namespace, bundle, broker, round or outcome; the nearest names "
        "are listed",
        "with another name",
    ),
    REFUSED: Meaning(
        "a rule forbids the change, or it contradicts what is there; nothing was changed",
        "after what the message names",
    ),
    UNFINISHED: Meaning(
        "accepted, and not done within `--wait`; or too many changes in a minute",
        "`trimtab outcome` tells; after a pause",
    ),
    STUCK: Meaning("the driver was stuck and ended itself", "yes"),
    INTERRUPTED: Meaning("interrupted by Ctrl-C before there was a result", ""),
}

OF_STATUS: Final[Mapping[int, int]] = {
    400: USAGE,
    401: DENIED,
    403: DENIED,
    404: NOT_FOUND,
    405: USAGE,
    409: REFUSED,
    412: REFUSED,
    422: USAGE,
    429: UNFINISHED,
    503: UNREACHABLE,
    504: UNFINISHED,
}
"""The exit code for the API's answers that are errors; all others are FAILED."""

DOCUMENT: Final = Path("docs/cli.md")
BEGIN: Final = "<!-- made by python -m admin.exit_codes -->"
END: Final = "<!-- end of exit codes -->"


def write_table(document: str) -> str:
    """The document with the current table; raises ValueError without the marks."""
    before, _, rest = document.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"the document lacks {BEGIN} or {END}")
    rows = [f"| {code} | {each.what} | {each.again} |" for code, each in TABLE.items()]
    lines = ["| exit code | meaning | run it again? |", "|---|---|---|", *rows]
    return f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n\n{END}{after}"


if __name__ == "__main__":
    DOCUMENT.write_text(write_table(DOCUMENT.read_text("utf-8")), "utf-8")
