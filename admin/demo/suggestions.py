"""Commands to try after a demo, with the names of what was just shown."""

from __future__ import annotations

import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from admin.demo.processes import ENVIRONMENT
from admin.demo.story import Story
from trimtab.explaining.words import iso


def suggestions(story: Story, folder: Path, api_url: str, *, kept: bool) -> Iterator[str]:
    """Lines to print. ``kept``: whether Kafka and Redis still run."""
    told = story.last_with_moves
    first, last = story.first, story.last
    if told is None or first is None or last is None:
        return
    cluster, command = told.record.cluster, _command()
    if kept:
        yield f"The job, its servers and fleet run until Ctrl-C. In another terminal, {_here()}:"
    else:
        yield f"Run `{command} demo --keep`, which leaves its servers up and names a bundle to ask"
        yield f"for. Then, in another terminal, {_here()}:"
    yield f"  . {folder / ENVIRONMENT}"
    yield f"  {command} status"
    yield f"  {command} brokers list"
    yield f"  {command} why {told.record.moves[0].bundle} --cluster {cluster}"
    span = f"--from {iso(first.record.at)} --to {iso(last.record.at)}"
    yield f"  {command} replay {span} --cluster {cluster}"
    bundle = told.record.moves[0].bundle
    yield f"The control plane is at {api_url}, what it answers to at {api_url}/docs; pulsar-admin"
    yield "takes it as --admin-url. To take a bundle off its broker (--execute does it):"
    yield f"  {command} bundles unload {bundle}"
    yield "Without any server:"
    yield f"  {command} simulate skewed --strategy trimtab --strategy threshold --strategy avg"


def _command() -> str:
    """How to call this installation's trimtab from here."""
    ours = Path(sysconfig.get_path("scripts")) / "trimtab"
    found = shutil.which("trimtab")
    if found and Path(found).resolve() == ours.resolve():
        return "trimtab"
    here = Path.cwd()
    return str(ours.relative_to(here) if ours.is_relative_to(here) else ours)


def _here() -> str:
    return f"in {Path.cwd()}"
