"""``python -m deploy.dashboards`` writes each board as Grafana's JSON."""

from __future__ import annotations

from deploy.dashboards.boards import BOARDS, FOLDER
from deploy.dashboards.rendering import render

if __name__ == "__main__":
    for board in BOARDS:
        (FOLDER / f"{board.uid}.json").write_text(render(board), "utf-8")
