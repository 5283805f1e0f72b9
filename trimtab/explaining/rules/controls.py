"""Explains what people keep bundles from: pins, modes, maintenance windows."""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.explaining.accounts.cause import Cause
from trimtab.explaining.scene import Scene
from trimtab.explaining.words import format_count
from trimtab.model import namespace_of
from trimtab.reasons import Rule
from trimtab.round.holding import mode_of, waits
from trimtab.settings.windows import opens_ms


def explain_hold(scene: Scene, bundle: str) -> Cause:
    """The cause for a bundle whose change the round held back."""
    cause = _waiting(scene, bundle) or Cause(Rule.HELD, "")
    return cause._replace(why=f"it would be {scene.held[bundle]}; {cause.why}")


def explain_trade_held(scene: Scene, broker: str) -> Cause | None:
    """The cause for a broker that a plan which waits would take bundles off or give some."""
    moves = [each for each in scene.plan.held.moves if broker in (each.source, each.destination)]
    if not moves:
        return None
    gives = sum(each.source == broker for each in moves)
    cause = _waiting(scene, moves[0].bundle) or Cause(Rule.HELD, "changes wait")
    would = f"it would give {format_count(gives, 'bundle')} and get {len(moves) - gives}"
    return cause._replace(why=f"{would}; {cause.why}")


def explain_controls(scene: Scene, bundle: str) -> Iterator[Cause]:
    """What people keep from the strategies, if this bundle is of it."""
    if scene.view.controls.pin_of(bundle) is not None:
        yield explain_pin(scene, bundle)
    elif (cause := _waiting(scene, bundle)) is not None:
        yield cause


def explain_pin(scene: Scene, bundle: str) -> Cause:
    """The cause for a bundle that is pinned, or its namespace."""
    controls = scene.view.controls
    pin = controls.pin_of(bundle)
    if pin is None:
        return Cause(Rule.PINNED, "it was pinned")
    what = "it" if bundle in controls.pins else namespace_of(bundle)
    by = f" by {pin.by}" if pin.by else ""
    reason = f": {pin.reason}" if pin.reason else ""
    return Cause(Rule.PINNED, f"{what} is pinned{by}{reason}", until=pin.until)


def _waiting(scene: Scene, bundle: str) -> Cause | None:
    view, settings, namespace = scene.view, scene.settings, namespace_of(bundle)
    rule = waits(view.controls, settings, namespace, scene.now_ms)
    if rule is Rule.HELD:
        mode = mode_of(view.controls, settings, namespace)
        whose = namespace if namespace in view.controls.modes else "plans.mode"
        shown = f": `trimtab plans list --cluster {view.cluster}`" if mode.keeps_plans else ""
        return Cause(rule, f"changes wait for a person's word ({whose}: {mode}){shown}")
    if rule is Rule.OUTSIDE_WINDOW:
        opens = opens_ms(settings.plans.windows, scene.now_ms)
        return Cause(rule, "no maintenance window is open (plans.windows)", until=opens or 0)
    return None
