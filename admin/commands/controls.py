"""`trimtab pins`, `modes`, `budgets` and `windows`: what people keep from the strategies."""

from __future__ import annotations

import re
from typing import Annotated, Final

import typer

from admin.ending import end
from admin.exit_codes import USAGE
from admin.output import Shown, describe, moment, text
from admin.session import Session
from admin.verbs import Change, acts, reads
from trimtab.controls import Mode
from trimtab.model import is_bundle

pin_commands = typer.Typer(help="Bundles and namespaces that stay.", no_args_is_help=True)
mode_commands = typer.Typer(help="Whether changes wait for a person.", no_args_is_help=True)
budget_commands = typer.Typer(help="How often tenants' bundles may move.", no_args_is_help=True)
window_commands = typer.Typer(help="When changes may be made.", no_args_is_help=True)

Subject = Annotated[str, typer.Argument(help="A bundle, tenant/namespace/0x…_0x…, or a namespace.")]
Tenant = Annotated[str, typer.Argument(help="The tenant.")]
OfNamespace = Annotated[str, typer.Option(help="Only this namespace, instead of the cluster.")]

_EXAMPLE: Final = "to set them: trimtab config set plans.windows='mon-fri 22:00-06:00' --execute"
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@pin_commands.command("list")
@reads
def list_pins(session: Session) -> Shown:
    """List the pins in force."""
    found = session.get("pins")
    rows = [{"what": name, **pin} for name, pin in found.items()]
    columns = {"what": text, "until": moment, "by": text, "broker": text, "reason": text}
    return Shown(found, rows, columns)


@pin_commands.command("set")
@acts
def pin(
    _: Session,
    subject: Subject,
    lasts: Annotated[str, typer.Option("--for", help="How long: 30m, 2h, 3d.")] = "1d",
    broker: Annotated[
        str, typer.Option(help="Where the bundle goes if it must be placed again.")
    ] = "",
) -> Change:
    """Leave a bundle, or the bundles of a namespace, where they are."""
    body: dict[str, object] = {"seconds": _seconds(lasts)}
    if broker and not is_bundle(subject):
        raise end("--broker is for a bundle; an isolation policy keeps a namespace", USAGE)
    return Change("PUT", f"pins/{subject}", body | ({"broker": broker} if broker else {}))


@pin_commands.command("delete")
@acts
def unpin(_: Session, subject: Subject) -> Change:
    """End a pin."""
    return Change("DELETE", f"pins/{subject}")


@mode_commands.command("list")
@reads
def list_modes(session: Session) -> Shown:
    """List the cluster's mode, and those of namespaces that have their own."""
    found = session.get("modes")
    rows = [{"of": session.cluster, "mode": found["cluster"]}]
    rows += [{"of": name, "mode": mode} for name, mode in found["namespaces"].items()]
    return Shown(found, rows, {"of": text, "mode": text})


@mode_commands.command("set")
@acts
def set_mode(
    _: Session,
    mode: Annotated[Mode, typer.Argument(help="observe, propose, approve or automatic.")],
    namespace: OfNamespace = "",
) -> Change:
    """Set whether changes that strategies want are made, proposed or only shown."""
    path = f"modes/{namespace}" if namespace else "modes"
    return Change("PUT", path, {"mode": mode.value})


@mode_commands.command("reset")
@acts
def reset_mode(
    _: Session, namespace: Annotated[str, typer.Argument(help="tenant/namespace")]
) -> Change:
    """Give a namespace the cluster's mode."""
    return Change("DELETE", f"modes/{namespace}")


@budget_commands.command("list")
@reads
def list_budgets(session: Session) -> Shown:
    """List how many bundles may move in plans.tenant_period, of tenants with their own number."""
    found = session.get("budgets")
    rows = [{"tenant": tenant, "moves": moves} for tenant, moves in found["tenants"].items()]
    each = "any number" if found["each"] is None else found["each"]
    notes = [f"of every other tenant: {each} in {found['seconds']:.0f} s (plans.tenant_moves)"]
    return Shown(found, rows, {"tenant": text, "moves": text}, notes=notes)


@budget_commands.command("set")
@acts
def set_budget(
    _: Session,
    tenant: Tenant,
    moves: Annotated[int, typer.Argument(min=0, help="In plans.tenant_period; 0: none moves.")],
) -> Change:
    """Set how many bundles of a tenant may move."""
    return Change("PUT", f"budgets/{tenant}", {"moves": moves})


@budget_commands.command("reset")
@acts
def reset_budget(_: Session, tenant: Tenant) -> Change:
    """Give a tenant the budget that plans.tenant_moves says."""
    return Change("DELETE", f"budgets/{tenant}")


@window_commands.command("show")
@reads
def show_windows(session: Session) -> Shown:
    """Show the maintenance windows (the setting plans.windows), and when the next one opens."""
    shown = describe(session.get("windows"), {"opens": moment})
    return shown._replace(notes=[_EXAMPLE])


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d+)([smhd])", text)
    if found is None:
        raise end(f"--for: {text} is not a number of s, m, h or d, as in 2h", USAGE)
    return int(found[1]) * _UNITS[found[2]]
