"""`trimtab plans`: plans that wait for a person, and what people do with them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from admin.output import Shown, moment, share, text
from admin.session import Session
from admin.verbs import Change, acts, reads
from control.next_command import command

plan_commands = typer.Typer(
    help="Plans that wait for a person, or are being carried out.", no_args_is_help=True
)

Plan = Annotated[str, typer.Argument(help="The plan's id, as `trimtab plans list` shows it.")]
Brokers = Annotated[list[str], typer.Argument(help="host:port, in the order of their turns.")]


@plan_commands.command("list")
@reads
def list_plans(session: Session) -> Shown:
    """List the plans of the last day, the newest first."""
    found = session.get("plans")
    rows = [{**plan, **_effect(plan)} for plan in found]
    columns = {"id": text, "state": text, "origin": text, "at": moment}
    columns |= {"handovers": text, "range": text}
    wide = {"until": moment, "by": text, "mode": text}
    waiting = [plan["id"] for plan in found if plan["state"] == "proposed"]
    return Shown(found, rows, columns, wide, notes=_next(session, waiting))


def _next(session: Session, waiting: list[str]) -> list[str]:
    """What to type about the newest plan that waits."""
    return [
        line
        for plan in waiting[:1]
        for line in (
            f"Next: {command('plans', 'show', plan, '--cluster', session.cluster)}",
            f"  or: {_approve(session, plan)}",
        )
    ]


def _approve(session: Session, plan: str) -> str:
    return command("plans", "approve", plan, "--cluster", session.cluster, "--execute")


@plan_commands.command("show")
@reads
def show_plan(session: Session, plan: Plan) -> Shown:
    """Show a plan: what it changes, what it is predicted to do, and how far it has come."""
    found = session.get(f"plans/{plan}")
    rows = [{**step, "what": step["bundle"] or step["source"]} for step in found["steps"]]
    columns = {"kind": text, "what": text, "source": text, "destination": text}
    effect = _effect(found)
    seconds = found["effect"]["seconds"]
    notes = [
        f"{found['state']}; {effect['handovers']} hand-overs in about {seconds:.0f} s"
        + (f"; range {effect['range']}" if effect["range"] else "")
    ]
    if found["state"] == "proposed":
        notes.append(f"expires at {moment(found['until'])}")
        notes.append(f"Next: {_approve(session, plan)}")
    return Shown(found, rows, {**columns, "state": text, "rule": text}, notes=notes)


@plan_commands.command("approve")
@acts
def approve(_: Session, plan: Plan) -> Change:
    """Carry out a plan."""
    return Change("POST", f"plans/{plan}/approve")


@plan_commands.command("reject")
@acts
def reject(_: Session, plan: Plan) -> Change:
    """Do not carry out a plan, and do not propose the same again before it would have expired."""
    return Change("POST", f"plans/{plan}/reject")


@plan_commands.command("cancel")
@acts
def cancel(_: Session, plan: Plan) -> Change:
    """Cancel the steps of a plan that have not begun."""
    return Change("POST", f"plans/{plan}/cancel")


@plan_commands.command("undo")
@acts
def undo(_: Session, plan: Plan) -> Change:
    """Make a plan that moves back what this plan has moved."""
    return Change("POST", f"plans/{plan}/undo")


@plan_commands.command("drain")
@acts
def plan_drain(_: Session, brokers: Brokers) -> Change:
    """Make a plan that empties brokers; it says what that costs, and runs once it is approved."""
    return Change("POST", "plans", {"brokers": brokers})


@plan_commands.command("restart")
@acts
def plan_restart(_: Session, brokers: Brokers) -> Change:
    """Make a plan that restarts brokers one after the other; each is used again once it was
    restarted."""
    return Change("POST", "plans", {"brokers": brokers, "restart": True})


def _effect(plan: dict[str, Any]) -> dict[str, Any]:
    effect = plan["effect"]
    before, after = effect["before"], effect["after"]
    range_ = "" if before is None else f"{share(before)} -> {share(after)}"
    return {"handovers": effect["handovers"], "range": range_}
