"""`trimtab topics`: where a topic of Pulsar's is served."""

from __future__ import annotations

from typing import Annotated

import typer

from admin.ending import end
from admin.exit_codes import USAGE
from admin.output import Shown, text
from admin.session import Session
from admin.verbs import reads

topic_commands = typer.Typer(help="Topics of Pulsar's brokers.", no_args_is_help=True)


@topic_commands.command("lookup")
@reads
def lookup(
    session: Session,
    topic: Annotated[str, typer.Argument(help="persistent://tenant/namespace/topic")],
) -> Shown:
    """Say which bundle a topic is in, and who serves it; gives a bundle without an owner to a
    broker."""
    domain, _, name = topic.rpartition("://")
    if name.count("/") < 2:
        message = f"{topic}: must be persistent://tenant/namespace/topic, or without the domain"
        raise end(f"{message}\nNext: trimtab namespaces list", USAGE)
    found = session.get(f"topics/{domain or 'persistent'}/{name}")
    columns = {"bundle": text, "broker": text, "brokerUrl": text}
    if "migration" in found:
        columns["migration"] = text
    return Shown(found, [found], columns, {"brokerUrlTls": text, "httpUrl": text})
