"""`trimtab policies`: isolation policies, anti-affinity groups and failure domains of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from admin.commands.namespaces import Namespace
from admin.output import Shown, text
from admin.session import Session
from admin.verbs import Change, acts, reads

policy_commands = typer.Typer(help="Where bundles may be.", no_args_is_help=True)

Policy = Annotated[str, typer.Argument(help="The policy's name; the first by name applies.")]
Domain = Annotated[str, typer.Argument(help="The failure domain's name.")]


@policy_commands.command("list")
@reads
def list_policies(session: Session) -> Shown:
    """List all policies in force."""
    found = session.get("policies")
    return Shown(found, [*_rows(found)], {"name": text, "kind": text, "about": text, "where": text})


def _rows(found: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    for name, each in found["isolation"].items():
        about, where = ", ".join(each["namespaces"]), ", ".join(each["primary"])
        secondary = ", ".join(each["secondary"])
        where += f", then {secondary}" if secondary else ""
        yield {"name": name, "kind": "isolation", "about": about, "where": where}
    for namespace, group in sorted(found["groups"].items()):
        yield {"name": group, "kind": "anti-affinity", "about": namespace, "where": "apart"}
    for broker, domain in sorted(found["domains"].items()):
        yield {"name": domain, "kind": "failure-domain", "about": broker, "where": ""}


@policy_commands.command("set-isolation")
@acts
def set_isolation(
    _: Session,
    policy: Policy,
    namespace: Annotated[
        list[str], typer.Option(help="Regular expression of namespaces; repeatable.")
    ],
    primary: Annotated[
        list[str], typer.Option(help="Regular expression of brokers' hosts; repeatable.")
    ],
    secondary: Annotated[
        list[str] | None, typer.Option(help="The same, for too few primary brokers.")
    ] = None,
    min_available: Annotated[
        int, typer.Option(help="Primary brokers below which secondary ones serve too.")
    ] = 1,
) -> Change:
    """Reserve brokers for namespaces, as pulsar-admin ns-isolation-policy set does."""
    body = {
        "namespaces": namespace,
        "primary": primary,
        "secondary": secondary or [],
        "minAvailable": min_available,
    }
    return Change("PUT", f"policies/isolation/{policy}", body)


@policy_commands.command("delete-isolation")
@acts
def delete_isolation(_: Session, policy: Policy) -> Change:
    """Delete an isolation policy."""
    return Change("DELETE", f"policies/isolation/{policy}")


@policy_commands.command("set-anti-affinity")
@acts
def set_anti_affinity(
    _: Session,
    namespace: Namespace,
    group: Annotated[str, typer.Argument(help="Its group, which spreads over brokers.")],
) -> Change:
    """Put a namespace into an anti-affinity group, as pulsar-admin namespaces
    set-anti-affinity-group does."""
    return Change("PUT", f"policies/anti-affinity/{namespace}/{group}")


@policy_commands.command("delete-anti-affinity")
@acts
def delete_anti_affinity(_: Session, namespace: Namespace) -> Change:
    """Take a namespace out of its anti-affinity group."""
    return Change("DELETE", f"policies/anti-affinity/{namespace}")


@policy_commands.command("set-failure-domain")
@acts
def set_failure_domain(
    _: Session,
    domain: Domain,
    brokers: Annotated[
        list[str], typer.Argument(help="All of its brokers, host:port; may be absent now.")
    ],
) -> Change:
    """Say which brokers fail together, as pulsar-admin clusters create-failure-domain does."""
    return Change("PUT", f"policies/failure-domains/{domain}", {"brokers": brokers})


@policy_commands.command("delete-failure-domain")
@acts
def delete_failure_domain(_: Session, domain: Domain) -> Change:
    """Delete a failure domain."""
    return Change("DELETE", f"policies/failure-domains/{domain}")
