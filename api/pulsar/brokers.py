"""/admin/v2/brokers: the brokers, and the settings that change at run time (Pulsar Brokers)."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse

from api.context import InContext
from api.refusal import RefusedRequest
from control.pulsar_settings import keys_of, to_pulsar
from control.rounds import ClusterRounds
from control.settings import parse_value
from trimtab.model import namespace_of
from trimtab.ownership import WITHOUT_OWNER
from trimtab.settings import Settings
from trimtab.wire.intent import IntentKind

brokers = APIRouter(prefix="/brokers", tags=["brokers"])

PULSAR: Final = "4.0.8"
"""The version of Pulsar whose paths these are."""


@brokers.get("/leaderBroker")
def get_leader(context: InContext) -> dict[str, str]:
    """The broker that stands for the leader: decisions are the job's, so it is the first by name.
    404 if there is none."""
    name = leader(context.cluster())
    return {"serviceUrl": f"http://{name}", "brokerId": name}


@brokers.get("/configuration")
def list_dynamic_settings(context: InContext) -> list[str]:
    """The keys of Pulsar's that can be changed at run time."""
    return sorted(each.key for each in keys_of(context.cluster().settings()).values())


@brokers.get("/configuration/values")
def get_changed_settings(context: InContext) -> dict[str, str]:
    """What was changed at run time, by Pulsar's keys where they exist, else by trimtab's names."""
    last, memory = context.memory()
    return to_pulsar(last.defaults(), memory.overrides)


@brokers.get("/configuration/runtime")
def get_settings(context: InContext) -> dict[str, str]:
    """Every setting in force, by Pulsar's keys where they exist, else by trimtab's names."""
    last, memory = context.memory()
    settings = last.defaults().with_valid(memory.overrides)
    return to_pulsar(settings, settings.dumped())


@brokers.post("/configuration/{name}/{value:path}")
def change_setting(name: str, value: str, context: InContext) -> Response:
    """Change a setting, by Pulsar's key or trimtab's name; 412 if it is unknown or the value is
    one that it cannot have."""
    _require_dynamic(name, context.cluster().settings(), "update")
    context.tell(IntentKind.SETTINGS, settings={name: parse_value(value)})
    return Response()


@brokers.delete("/configuration/{name}")
def reset_setting(name: str, context: InContext) -> Response:
    """Return a setting to what the job was started with."""
    _require_dynamic(name, context.cluster().settings(), "delete")
    context.tell(IntentKind.RESET, names=(name,))
    return Response()


@brokers.get("/health")
def check_health(context: InContext) -> PlainTextResponse:
    """``ok`` if Kafka and Redis answer and a round of the cluster is recorded."""
    context.cluster()
    context.plane.store.ping()
    return PlainTextResponse("ok", media_type="application/json")


@brokers.get("/ready")
def check_readiness(context: InContext) -> PlainTextResponse:
    """Answer as /health does."""
    return check_health(context)


@brokers.get("/version")
def get_version() -> PlainTextResponse:
    """The version of Pulsar whose paths these are."""
    return PlainTextResponse(PULSAR, media_type="application/json")


@brokers.get("/internal-configuration")
def get_stores(context: InContext) -> dict[str, str]:
    """Where the records of ownership are (Pulsar InternalConfigurationData): Redis's address."""
    where = context.plane.redis
    return {"metadataStoreUrl": where, "configurationMetadataStoreUrl": where}


@brokers.get("")
def list_all_brokers(context: InContext) -> list[str]:
    """The brokers that serve."""
    return sorted(_serving(context.cluster()))


@brokers.get("/{cluster}")
def list_brokers(cluster: str, context: InContext) -> list[str]:
    """The brokers that serve. As in Pulsar, the cluster that is named makes no difference."""
    del cluster
    return sorted(_serving(context.cluster()))


@brokers.get("/{cluster}/{broker}/ownedNamespaces")
def list_owned_bundles(cluster: str, broker: str, context: InContext) -> dict[str, dict[str, Any]]:
    """The bundles that a broker owns; 404 if it does not serve."""
    del cluster
    last = context.cluster()
    if broker not in _serving(last):
        raise RefusedRequest(404, f"Broker id '{broker}' not found in available brokers.")
    records = context.plane.store.records_of(last.newest.cluster, broker)
    status = {"broker_assignment": "shared", "is_controlled": False, "is_active": True}
    return {
        bundle: {**status, "is_controlled": _is_isolated(namespace_of(bundle), last)}
        for bundle, record in sorted(records.items())
        if record.state not in WITHOUT_OWNER and record.owner == broker
    }


def leader(last: ClusterRounds) -> str:
    """The broker that stands for the leader; raises RefusedRequest (404) if none serves."""
    names = sorted(_serving(last))
    if not names:
        raise RefusedRequest(404, "Couldn't find leader broker")
    return names[0]


def _serving(last: ClusterRounds) -> set[str]:
    return {*last.newest.usage} - {*last.newest.gone}


def _is_isolated(namespace: str, last: ClusterRounds) -> bool:
    policies = last.newest.policies
    return policies is not None and policies.isolation_of(namespace) is not None


def _require_dynamic(name: str, settings: Settings, verb: str) -> None:
    if settings.path_of(name) is None:
        raise RefusedRequest(412, f"Can't {verb} non-dynamic configuration")
