"""What a person reads of a migration: what it is doing, what holds it up, and what to type next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from admin.output import moment
from control.next_command import command
from trimtab.explaining.words import format_count, iso

NAMED: Final = 5
"""Scopes that one line names, and topics that a status does."""

_BUNDLES: Final = {
    "quarantined": "is quarantined, as owner after owner died: none of its topics takes a step",
    "no-owner": "has no owner: none of its topics takes a step",
    "no-lease": "is of {}, which is not alive: none of its topics takes a step",
    "not-loaded": "is given to {}, which does not serve it yet: none of its topics takes a step",
    "not-named": "is served by {}, which has not named its topics: does it offer migrations? "
    "what does its log say?",
}
"""What is wrong with a bundle that a migration waits for, by its
`control.migration.waiting_bundles.Cause`."""

Told = Mapping[str, Any]
"""A migration as the API tells it (`control.migration.progress.Told`)."""


def notes(told: Told, cluster: str, *, reported: bool = False) -> list[str]:
    """All of it, a line each; the last say what to type, if anything helps. ``reported``: they
    stand below the report."""
    found = [_head(told), _progress(told), *_obstacles(told)]
    it = told["migration"]
    if it["state"] == "completed" and not told["left"] + told["total"]["migrated"]:
        found.append("no broker has named a topic of its scope: nothing has gone")
    if it["ended"]:
        found.append(f"ended at {moment(it['ended'])}")
    if told["ends"]:
        found.append(f"the last topic leaves at {moment(told['ends'])} at this pace")
    return found + [f"Next: {line}" for line in _next(told, cluster, reported)]


def waiting(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """The topics of a report that hold a migration up, a line each, with who has still to get their
    messages, where that is known."""
    said = ((row["topic"], waits_for(row)) for row in rows)
    return [f"{topic} waits for {who}" for topic, who in said if who]


def waits_for(row: Mapping[str, Any]) -> str:
    """Who has still to get messages of a topic, and how many; empty if all have them."""
    kind, named = ("region", row["regions"]) if row["regions"] else ("", row["subscriptions"])
    # An agent of an earlier version names one, without its messages.
    names = [f"{each['name']} ({each['messages']})" for each in named] or [row["subscription"]]
    more = f" and {row['more']} more" if row["more"] else ""
    return f"{kind} {', '.join(names)}{more}".strip()


def wave(migration: Mapping[str, Any]) -> str:
    """Which wave has begun last, of how many."""
    return f"{migration['wave'] + 1} of {len(migration['waves']) + 1}"


def why(migration: Mapping[str, Any], lost: int = 0) -> str:
    """What a migration waits for, or why it was paused or rolled back; empty if nothing is known.
    ``lost``: topics whose records are lost, of which the text then tells instead."""
    said = migration["why"]
    if migration["stopped"]:
        return f"paused by its gate: {said}"
    if migration["state"] == "paused":
        return f"paused by a person{said and f': {said}'}"
    if migration["state"] == "running" and said:
        return f"the next wave waits: {said}"
    if migration["state"].startswith("roll") and said and not lost:
        return f"rolled back: {said}"
    return str(said)


def _head(told: Told) -> str:
    it = told["migration"]
    target = it["target"]["serviceUrlTls"] or it["target"]["serviceUrl"]
    by, reason = it["by"] and f" by {it['by']}", it["reason"] and f": {it['reason']}"
    return f"{it['id']}: {it['scope']} to {target}, begun at {iso(it['at'])}{by}{reason}"


def _progress(told: Told) -> str:
    it, total = told["migration"], told["total"]
    topics = told["left"] + total["migrated"]
    parts = [
        f"{total['migrated']} of {format_count(topics, 'topic')} on green",
        f"{format_count(total['backlog'], 'message')} left to read on blue",
        f"{total['errors']} of {format_count(total['attempts'], 'step')} failed",
    ]
    if total["began"]:
        parts.append(f"{total['began']} began there")
    if kept := total["stays"] - total["began"]:
        # Which is which, and where a topic has gone on to, the report says of each.
        parts.append(f"{kept} stay there: written on green, or lost here")
    return f"{it['state']}, wave {wave(it)}: {', '.join(parts)}"


def _obstacles(told: Told) -> Iterator[str]:
    it, total = told["migration"], told["total"]
    if it["apart"]:
        more = f" and {len(it['apart']) - NAMED} more" if len(it["apart"]) > NAMED else ""
        yield f"left where they had migrated to before: {', '.join(it['apart'][:NAMED])}{more}"
    if said := why(it, told["lost"]):
        yield said
    if it["state"] == "paused" and total["replicating"]:
        topics = format_count(total["replicating"], "topic")
        yield f"no write of {topics} is taken until other regions lack no message of them"
    if it["unseen"] and not it["ended"]:
        bundles = format_count(it["unseen"], "bundle")
        yield f"{bundles} with topics not named by a broker yet: it cannot be complete before that"
    if not it["check"] and not it["ended"]:
        yield "migration.check is 0: no topic is looked at"
    yield from _stands_still(told)


def _stands_still(told: Told) -> Iterator[str]:
    """Since when, and what it waits for, as far as that is known."""
    for each in told["bundles"]:
        yield f"{each['bundle']} {_BUNDLES[each['cause']].format(each['owner'])}"
    if not told["still"]:
        return
    yield f"it has come no further since {moment(told['still'])}"
    if (active := _not_begun(told["migration"])) and not told["bundles"]:
        yield (
            f"{format_count(active, 'topic')} of waves that have begun did not leave blue, though "
            "brokers serve their bundles: the report has why steps fail; if none does, look at the "
            "brokers' logs"
        )


def _not_begun(migration: Mapping[str, Any]) -> int:
    """How many topics should have begun to go and have not; of a rollback none."""
    if migration["state"] != "running":
        return 0
    return sum(each["active"] for each in migration["counts"][: migration["wave"] + 1])


def _next(told: Told, cluster: str, reported: bool) -> Iterator[str]:
    it, total = told["migration"], told["total"]
    of = (it["id"], "--cluster", cluster)
    if (total["stays"] or total["errors"]) and not reported:
        yield command("migration", "report", *of)
    for each in told["bundles"]:
        if each["cause"] == "quarantined":
            yield command("bundles", "readmit", each["bundle"], "--cluster", cluster, "--execute")
    if it["state"] == "paused":
        yield command("migration", "resume", *of, "--execute")
    if not it["check"] and not it["ended"]:
        yield command("config", "set", "migration.check=1", "--cluster", cluster, "--execute")
