"""Writes the list of runbooks from the alerts: ``python -m admin.documents.runbooks``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from admin.documents.site import ROOT
from admin.documents.tables import row

DOCUMENT: Final = Path("docs/runbooks/README.md")
RULES: Final = Path("deploy/alerts/trimtab.yml")

_ALERT: Final = re.compile(r"alert: (\w+)$.*?runbook: (\S+)$", re.DOTALL | re.MULTILINE)
_HEAD: Final = f"""# Runbooks

<!-- made by python -m admin.documents.runbooks -->

One page an alert: what it means, how to see it, what to type, when to wake someone. The alerts are
in `{RULES}`; each names its page.

| alert | page |
|---|---|
"""


def write_document() -> str:
    """The whole text; raises OSError if an alert's page does not exist."""
    alerts = sorted(_ALERT.findall((ROOT / RULES).read_text("utf-8")))
    return _HEAD + "".join(f"{_row(alert, Path(page))}\n" for alert, page in alerts)


def _row(alert: str, page: Path) -> str:
    title = (ROOT / page).read_text("utf-8").partition("\n")[0].removeprefix("# ")
    return row(f"`{alert}`", f"[{title}]({page.name})")


if __name__ == "__main__":
    DOCUMENT.write_text(write_document(), "utf-8")
