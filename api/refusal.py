"""How errors are answered: an HTTP status, a reason, and the rule that decided if there is one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from control.intents import Objections
from control.rounds import NoSuchCluster
from simulation.replay.recorded import Missing
from sinks.errors import (
    Closed,
    KafkaUnavailable,
    Misconfigured,
    SinkError,
    StoreUnavailable,
    Unavailable,
)
from trimtab.intent_rules import IntentRule
from trimtab.settings.setting import InvalidSettings

_STATUS: Final[Mapping[str, int]] = {
    IntentRule.UNKNOWN_BROKER: 404,
    IntentRule.UNKNOWN_BUNDLE: 404,
    IntentRule.UNKNOWN_NAMESPACE: 404,
    IntentRule.UNKNOWN_POLICY: 404,
    IntentRule.NAMESPACE_EXISTS: 409,
    IntentRule.ID_IN_USE: 409,
    IntentRule.OBSERVING: 409,
    IntentRule.CONFLICT: 409,
    IntentRule.UNKNOWN_PLAN: 404,
    IntentRule.UNKNOWN_PIN: 404,
    IntentRule.ALREADY_APPROVED: 409,
    IntentRule.PLAN_EXPIRED: 409,
    IntentRule.PLAN_OVERTAKEN: 409,
    IntentRule.PLAN_STATE: 409,
    IntentRule.NOT_QUARANTINED: 409,
    IntentRule.UNKNOWN_MIGRATION: 404,
    IntentRule.ALREADY_MIGRATING: 409,
    IntentRule.MIGRATION_STATE: 409,
}
"""Rules by which an intent is refused; all others are preconditions that fail (412)."""


_STILL: Final[Mapping[type[Exception], str]] = {
    StoreUnavailable: "; rounds and settings are still told, and pause and resume are sent",
    KafkaUnavailable: "; bundles, namespaces and plans are still told",
}
"""What works without a server."""


class Problem(BaseModel):
    """Why a request is not answered."""

    reason: str = Field(description="Every cause.")
    rule: str | None = Field(default=None, description="The rule that decided, if one did.")
    next: str | None = Field(default=None, description="What to type next.")


_MEANINGS: Final[Mapping[int, str]] = {
    400: "The request cannot be read; all problems are named.",
    401: "No token in force.",
    403: "The role or the tenant of the token may not.",
    404: "Unknown, with the nearest names that exist.",
    405: "Not served by this method.",
    409: "It contradicts what is there.",
    412: "A rule forbids it.",
    429: "Too many changes in a minute.",
    500: "Accepted and expired; or Kafka or Redis refuses what trimtab asks.",
    503: "Kafka or Redis is away, or no job reads intents.",
    504: "Accepted, and not done in time.",
}
RESPONSES: Final[dict[int | str, dict[str, Any]]] = {
    status: {"model": Problem, "description": meaning} for status, meaning in _MEANINGS.items()
}
"""The errors that every path may answer, for its description."""


class RefusedRequest(Exception):
    """A request that is not carried out: its HTTP status, why, and the rule that it breaks."""

    def __init__(
        self, status: int, reason: str, rule: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(reason)
        self.status, self.reason, self.rule = status, reason, rule
        self.headers = headers


def status_of(rule: str) -> int:
    """The HTTP status for a rule that an intent, or what it asked for, breaks."""
    return _STATUS.get(rule, 412)


def handle_errors(app: FastAPI) -> None:
    """Answer each error as Pulsar's clients expect: a JSON object with a ``reason``."""
    for kind, handle in _HANDLERS.items():
        app.add_exception_handler(kind, handle)


# Any: Starlette types all handlers by Exception, and calls each with the one that it is for.
def _answer_refusal(_: Request, error: Any) -> JSONResponse:
    return _answer(error.status, error.reason, error.rule, error.headers)


def _answer_objections(_: Request, error: Any) -> JSONResponse:
    rule = error.flaws[0][0]
    return _answer(status_of(rule), "; ".join(error.problems), rule)


def _answer_no_cluster(_: Request, error: Any) -> JSONResponse:
    return _answer(404, str(error))


def _answer_other_version(_: Request, error: Any) -> JSONResponse:
    reason = "; ".join(error.problems)
    return _answer(409, f"another version of trimtab recorded the job's settings: {reason}")


def _answer_missing_records(_: Request, error: Any) -> JSONResponse:
    return _answer(503, f"{error}; ask again")


def _answer_sink_error(_: Request, error: Any) -> JSONResponse:
    away = isinstance(error, Unavailable | Closed | Misconfigured)
    works = next((still for kind, still in _STILL.items() if isinstance(error, kind)), "")
    return _answer(503 if away else 500, f"{error}{works}", next="trimtab doctor")


def _answer_unreadable(_: Request, error: Any) -> JSONResponse:
    return _answer(400, "; ".join(_place(each) for each in error.errors()))


def _answer_http_error(request: Request, error: Any) -> JSONResponse:
    path, method = request.url.path, request.method
    reasons = {404: f"{path}: no such path", 405: f"{path}: not by {method}"}
    reason = reasons.get(error.status_code, error.detail)
    if error.status_code in reasons and path.startswith("/admin/"):
        reason += " of Pulsar's that trimtab serves: ask a broker"
    elif error.status_code in reasons:
        reason += "; the API's paths are at /docs"
    return _answer(error.status_code, reason, headers=error.headers)


_HANDLERS: Final[Mapping[type[Exception], Callable[[Request, Any], JSONResponse]]] = {
    RefusedRequest: _answer_refusal,
    Objections: _answer_objections,
    NoSuchCluster: _answer_no_cluster,
    InvalidSettings: _answer_other_version,
    Missing: _answer_missing_records,
    SinkError: _answer_sink_error,
    RequestValidationError: _answer_unreadable,
    HTTPException: _answer_http_error,
}


def _place(problem: Mapping[str, object]) -> str:
    """Where a request is wrong, and how."""
    where = problem["loc"]
    named = ".".join(map(str, where)) if isinstance(where, tuple) else str(where)
    return f"{named}: {problem['msg']}"


def _answer(
    status: int,
    reason: str,
    rule: str = "",
    headers: Mapping[str, str] | None = None,
    **more: str,
) -> JSONResponse:
    told = {"reason": reason, **({"rule": rule} if rule else {}), **more}
    return JSONResponse(told, status, dict(headers or {}))
