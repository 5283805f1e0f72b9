"""Makes the ACL file lines of Redis users for the job, for each broker and for readers.

    python -m deploy.redis_acl job --cluster east < password >> users.acl
    python -m deploy.redis_acl broker --cluster east --broker a:8080 < password >> users.acl
    python -m deploy.redis_acl reader --cluster east < password >> users.acl

The rights of a role are in deploy/acl/, the reasons in docs/security.md. The password is a line of
stdin or in TRIMTAB_REDIS_PASSWORD; only its SHA-256 is written.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from enum import StrEnum
from getpass import getpass
from hashlib import sha256
from importlib.resources import files
from typing import Annotated, Final
from urllib.parse import quote

import typer

from sinks.redis.leasing.leases import literal
from trimtab.model import InvalidName, parse_subject
from trimtab.wire import keys

PASSWORD_VARIABLE: Final = "TRIMTAB_REDIS_PASSWORD"

SHORTEST_PASSWORD: Final = 16
"""Redis does not slow down password guessing, and keeps an unsalted hash."""

_ANY_RUN: Final = "?" * 40
"""Matches a history. Of exact width: ``*:a`` would also match the assertions of ``x:a``."""

# Characters at which Redis would end, split or unquote a rule.
_UNSAFE: Final = re.compile(r"[\"'()]")

_COMMENT: Final = re.compile(r"^#.*$", re.MULTILINE)
_KEYS: Final = re.compile(r"%R?W?~[^\s)]+")


class Role(StrEnum):
    JOB = "job"
    BROKER = "broker"
    READER = "reader"


def user_name(role: Role, clusters: Sequence[str], broker: str = "") -> str:
    """The user's name, such as ``job-east`` and ``broker-east/a:8080``."""
    return f"{role}-{','.join(clusters)}" + (f"/{broker}" if broker else "")


def acl_line(role: Role, clusters: Sequence[str], password_hash: str, broker: str = "") -> str:
    """The ACL line of a user with its role's rights in ``clusters``; ``broker``: its broker.

    ``password_hash``: SHA-256 in hexadecimal. Raises InvalidName.
    """
    _check(role, clusters, broker)
    patterns = [_patterns(literal(cluster), literal(broker)) for cluster in clusters]
    template = files("deploy").joinpath("acl", f"{role}.acl").read_text("utf-8")
    rules = _KEYS.sub(
        lambda rule: " ".join(rule[0].format(**each) for each in patterns),
        " ".join(_COMMENT.sub("", template).split()),
    )
    name = user_name(role, clusters, broker)
    return f"user {name} reset resetchannels on #{password_hash} {rules}"


def _check(role: Role, clusters: Sequence[str], broker: str) -> None:
    if (role is Role.BROKER) != bool(broker):
        raise InvalidName("a broker's user, and no other, needs --broker")
    if not clusters or (broker and len(clusters) > 1):
        raise InvalidName("needs --cluster; a broker belongs to one")
    for cluster in clusters:
        parse_subject(f"{cluster}/{broker or 'any'}")
    for name in (*clusters, broker):
        if _UNSAFE.search(name):
            raise InvalidName(f"{name!r} cannot stand in an ACL: no quotes or parentheses")


def _patterns(cluster: str, broker: str) -> dict[str, str]:
    """The values for the templates' placeholders; both names are already escaped."""
    commands, lease = keys.command_stream(cluster, ""), keys.lease_key(cluster, "")
    owned, urls = keys.owned_key(cluster, ""), keys.urls_key(cluster, "")
    return {
        "all": keys.open_key(cluster).removesuffix("open") + "*",
        "open": keys.open_key(cluster),
        "replicas": keys.replicas_key(cluster),
        "ownership": keys.ownership_key(cluster),
        "journal": keys.journal_key(cluster),
        "unjournalled": keys.unjournalled_key(cluster),
        "applied": keys.applied_key(cluster),
        "bundles": keys.bundles_key(cluster),
        "hints": keys.hints_key(cluster),
        "placed": keys.placed_key(cluster),
        "tallies": keys.tallies_key(cluster),
        "groups": keys.groups_key(cluster),
        "urls": f"{urls}*",
        "own_urls": f"{urls}{broker}",
        "outcomes": f"{keys.outcome_key(cluster, '')}*",
        "plans": f"{keys.plans_key(cluster)}*",
        "migrations": keys.migrations_key(cluster),
        "topics": f"{keys.topics_key(cluster, '')}*",
        "places": f"{keys.places_key(cluster, '')}*",
        "migrated": f"{keys.migrated_key(cluster, '')}*",
        "named": f"{keys.named_key(cluster, '')}*",
        "whys": f"{keys.whys_key(cluster)}*",
        "commands": f"{commands}*",
        "own_commands": f"{commands}{broker}",
        "leases": f"{lease}*",
        "lease": f"{lease}{broker}",
        "sessions": keys.sessions_key(cluster),
        "clock": keys.clock_key(cluster),
        "successor": keys.successor_key(cluster, broker),
        "owned": f"{owned}*",
        "assertions_prefix": keys.assertions_prefix(cluster),
        "assertion": keys.assertion_key(cluster, _ANY_RUN, broker),
    }


def run(
    role: Annotated[Role, typer.Argument(help="Whose user it is.")],
    cluster: Annotated[list[str], typer.Option(help="May be repeated for job and reader.")],
    broker: Annotated[str, typer.Option(help="The broker's id, host:port.")] = "",
) -> None:
    """Print the line of an ACL file that makes one user."""
    password = _password()
    if len(password) < SHORTEST_PASSWORD:
        typer.echo(f"the password has fewer than {SHORTEST_PASSWORD} characters", err=True)
        raise typer.Exit(2)
    try:
        line = acl_line(role, cluster, sha256(password.encode()).hexdigest(), broker)
    except InvalidName as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(2) from error
    name = quote(user_name(role, cluster, broker), safe="")
    typer.echo(f"in a Redis address the user is {name}", err=True)
    typer.echo(line)


def _password() -> str:
    if (given := os.environ.get(PASSWORD_VARIABLE)) is not None:
        return given
    if sys.stdin.isatty():
        return getpass()
    return sys.stdin.readline().rstrip("\r\n")


if __name__ == "__main__":
    typer.run(run)
