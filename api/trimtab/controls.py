"""/trimtab/v1/clusters/{cluster}/: pins, modes of namespaces, budgets of tenants, windows."""

from __future__ import annotations

import time
from typing import Any, Final

import msgspec
from fastapi import APIRouter
from pydantic import BaseModel, Field

from api.context import InContext
from api.trimtab.changes import Change, HowToChange
from trimtab.cluster.intents.controls import LONGEST_PIN_MS
from trimtab.controls import Mode
from trimtab.settings.windows import is_open, opens_ms
from trimtab.wire.intent import IntentKind

own_pins = APIRouter(prefix="/clusters/{cluster}/pins", tags=["controls"])
own_modes = APIRouter(prefix="/clusters/{cluster}", tags=["controls"])

_NAMESPACE: Final = "/{tenant}/{namespace}"
_BUNDLE: Final = "/{tenant}/{namespace}/{bundle}"


class NewPin(BaseModel, extra="forbid"):
    """How long a pin stands."""

    seconds: float = Field(gt=0, le=LONGEST_PIN_MS / 1000)


class NewBundlePin(NewPin):
    """How long a bundle's pin stands, and where the bundle goes if it must be placed again."""

    broker: str = ""


class NewMode(BaseModel, extra="forbid"):
    """Whether changes that strategies want are made, proposed or only shown."""

    mode: Mode


class NewBudget(BaseModel, extra="forbid"):
    """How many of a tenant's bundles may move in ``plans.tenant_period``."""

    moves: int = Field(ge=0, le=1_000_000)


@own_pins.get("")
def list_pins(cluster: str, context: InContext) -> dict[str, Any]:
    """The pins in force, by bundle or namespace; ``until`` in epoch ms."""
    controls = context.plane.memory(context.plane.cluster(cluster)).controls
    told: dict[str, Any] = msgspec.to_builtins(controls.at(_now_ms()).pins)
    return told


@own_pins.put(_NAMESPACE)
def pin_namespace(
    cluster: str, tenant: str, namespace: str, pin: NewPin, how: HowToChange
) -> Change:
    """Leave the bundles of a namespace where they are."""
    name = f"{tenant}/{namespace}"
    return how.ask(IntentKind.PIN, cluster, name=name, until=_until(pin))


@own_pins.put(_BUNDLE)
def pin_bundle(  # noqa: PLR0913 - a path and its body
    cluster: str, tenant: str, namespace: str, bundle: str, pin: NewBundlePin, how: HowToChange
) -> Change:
    """Leave a bundle where it is."""
    name = f"{tenant}/{namespace}/{bundle}"
    return how.ask(IntentKind.PIN, cluster, bundle=name, until=_until(pin), broker=pin.broker)


@own_pins.delete(_NAMESPACE)
def unpin_namespace(cluster: str, tenant: str, namespace: str, how: HowToChange) -> Change:
    """End the pin of a namespace."""
    return how.ask(IntentKind.UNPIN, cluster, name=f"{tenant}/{namespace}")


@own_pins.delete(_BUNDLE)
def unpin_bundle(
    cluster: str, tenant: str, namespace: str, bundle: str, how: HowToChange
) -> Change:
    """End the pin of a bundle."""
    return how.ask(IntentKind.UNPIN, cluster, bundle=f"{tenant}/{namespace}/{bundle}")


@own_modes.get("/modes")
def list_modes(cluster: str, context: InContext) -> dict[str, Any]:
    """The cluster's mode, and those of namespaces that have their own."""
    last = context.plane.cluster(cluster)
    settings = last.settings()
    whole = Mode.OBSERVE if settings.round.observe_only else Mode(settings.plans.mode)
    modes = context.plane.memory(last).controls.modes
    return {"cluster": whole.value, "namespaces": msgspec.to_builtins(modes)}


@own_modes.put("/modes")
def set_mode(cluster: str, wanted: NewMode, how: HowToChange) -> Change:
    """Set the mode of a whole cluster: the settings round.observe_only and plans.mode."""
    values: dict[str, str | bool] = {"round.observe_only": wanted.mode is Mode.OBSERVE}
    if wanted.mode is not Mode.OBSERVE:
        values["plans.mode"] = wanted.mode.value
    return how.ask(IntentKind.SETTINGS, cluster, settings=values)


@own_modes.put("/modes" + _NAMESPACE)
def set_namespace_mode(
    cluster: str, tenant: str, namespace: str, wanted: NewMode, how: HowToChange
) -> Change:
    """Set the mode of a namespace."""
    return how.ask(IntentKind.MODE, cluster, name=f"{tenant}/{namespace}", mode=wanted.mode)


@own_modes.delete("/modes" + _NAMESPACE)
def reset_namespace_mode(cluster: str, tenant: str, namespace: str, how: HowToChange) -> Change:
    """Give a namespace the cluster's mode."""
    return how.ask(IntentKind.MODE, cluster, name=f"{tenant}/{namespace}")


@own_modes.get("/budgets")
def list_budgets(cluster: str, context: InContext) -> dict[str, Any]:
    """How many of a tenant's bundles may move in how many seconds; null: any number."""
    last = context.plane.cluster(cluster)
    plans, controls = last.settings().plans, context.plane.memory(last).controls
    return {
        "seconds": plans.tenant_period,
        "each": plans.tenant_moves or None,
        "tenants": controls.budgets,
    }


@own_modes.put("/budgets/{tenant}")
def set_budget(cluster: str, tenant: str, wanted: NewBudget, how: HowToChange) -> Change:
    """Set a tenant's budget; with 0 none of its bundles moves, except for repairs."""
    return how.ask(IntentKind.BUDGET, cluster, name=tenant, limit=wanted.moves)


@own_modes.delete("/budgets/{tenant}")
def reset_budget(cluster: str, tenant: str, how: HowToChange) -> Change:
    """Give a tenant the budget that plans.tenant_moves says."""
    return how.ask(IntentKind.BUDGET, cluster, name=tenant)


@own_modes.get("/windows")
def get_windows(cluster: str, context: InContext) -> dict[str, Any]:
    """The maintenance windows (the setting plans.windows), and whether one is open now; ``opens``
    in epoch ms, null if none ever does."""
    windows, now_ms = context.plane.cluster(cluster).settings().plans.windows, _now_ms()
    opens = opens_ms(windows, now_ms)
    return {"windows": windows, "open": is_open(windows, now_ms), "opens": opens}


def _until(pin: NewPin) -> int:
    return _now_ms() + round(1000 * pin.seconds)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
