"""`trimtab top`: a cluster live in the terminal."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Annotated

import typer

from admin.ending import end
from admin.exit_codes import FAILED, USAGE
from admin.session import connect
from admin.verbs import Cluster, Config, Context


def top(
    cluster: Cluster = "",
    context: Context = "",
    config: Config = None,
    every: Annotated[float, typer.Option(min=0.5, help="Seconds between two looks.")] = 2.0,
) -> None:
    """Watch a cluster live: its brokers, what rounds decide, and why; q ends it."""
    # Textual draws on stderr, so that a program may print its result.
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        raise end("top draws on a terminal\nNext: trimtab status -o json", USAGE)
    if find_spec("textual") is None:
        raise end("top needs Textual\nNext: pip install 'trimtab[top]'", FAILED)
    # Imported here: Textual is an extra.
    from admin.top.app import Top
    from admin.top.looking import Look

    with connect(context, config, cluster) as session:
        look = Look(session)
        assert look.cluster
        Top(look, every).run()
