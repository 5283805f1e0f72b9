"""`trimtab policy`: isolation policies, anti-affinity groups and failure domains of a cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from admin.commands.connection import send
from admin.commands.options import Cluster, Config, Unchecked, Wait
from admin.ending import USAGE, end
from control.intents import new_intent
from trimtab.policies import Isolation
from trimtab.wire.control import IntentKind

policy_commands = typer.Typer(help="Where bundles may be.", no_args_is_help=True)

Delete = Annotated[bool, typer.Option("--delete", help="Delete it instead.")]


@policy_commands.command("isolation")
def isolation(  # noqa: PLR0913 - the options of a command line
    cluster: Cluster,
    name: Annotated[str, typer.Argument(help="The policy's name; the first by name applies.")],
    namespace: Annotated[
        list[str] | None, typer.Option(help="Regular expression of namespaces; repeatable.")
    ] = None,
    primary: Annotated[
        list[str] | None, typer.Option(help="Regular expression of brokers' hosts; repeatable.")
    ] = None,
    secondary: Annotated[
        list[str] | None, typer.Option(help="The same, for too few primary brokers.")
    ] = None,
    min_available: Annotated[
        int, typer.Option(help="Primary brokers below which secondary ones serve too.")
    ] = 1,
    delete: Delete = False,
    wait: Wait = 0.0,
    unchecked: Unchecked = False,
    config: Config = None,
) -> None:
    """Reserve brokers for namespaces, as pulsar-admin ns-isolation-policy set does."""
    _one_of(delete=delete, given=bool(namespace and primary), what="--namespace and --primary")
    policy = None
    if not delete:
        policy = Isolation(
            namespaces=tuple(namespace or ()),
            primary=tuple(primary or ()),
            secondary=tuple(secondary or ()),
            min_available=min_available,
        )
    intent = new_intent(IntentKind.ISOLATION, cluster, name=name, isolation=policy)
    send(intent, config, unchecked=unchecked, wait_s=wait)


@policy_commands.command("anti-affinity")
def anti_affinity(  # noqa: PLR0913 - the options of a command line
    cluster: Cluster,
    namespace: Annotated[str, typer.Argument(help="tenant/namespace.")],
    group: Annotated[str, typer.Argument(help="Its group, which spreads over brokers.")] = "",
    delete: Delete = False,
    wait: Wait = 0.0,
    unchecked: Unchecked = False,
    config: Config = None,
) -> None:
    """Put a namespace into an anti-affinity group, as pulsar-admin namespaces
    set-anti-affinity-group does."""
    _one_of(delete=delete, given=bool(group), what="a group")
    intent = new_intent(IntentKind.ANTI_AFFINITY, cluster, name=namespace, group=group)
    send(intent, config, unchecked=unchecked, wait_s=wait)


@policy_commands.command("failure-domain")
def failure_domain(  # noqa: PLR0913 - the options of a command line
    cluster: Cluster,
    name: Annotated[str, typer.Argument(help="The domain's name.")],
    brokers: Annotated[
        list[str] | None, typer.Argument(help="All of its brokers, host:port; may be absent now.")
    ] = None,
    delete: Delete = False,
    wait: Wait = 0.0,
    unchecked: Unchecked = False,
    config: Config = None,
) -> None:
    """Say which brokers fail together, as pulsar-admin clusters create-failure-domain does."""
    _one_of(delete=delete, given=bool(brokers), what="its brokers")
    members = tuple(brokers or ())
    intent = new_intent(IntentKind.FAILURE_DOMAIN, cluster, name=name, brokers=members)
    send(intent, config, unchecked=unchecked, wait_s=wait)


def _one_of(*, delete: bool, given: bool, what: str) -> None:
    if delete == given:
        raise end(f"give either {what} or --delete", USAGE)
