"""Why a bundle was moved, split, merged or repaired for reasons other than balance."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from trimtab.explaining.accounts.cause import Cause
from trimtab.explaining.nearest import raise_setting, switch_setting
from trimtab.explaining.scene import Scene
from trimtab.explaining.words import amount, format_count, seconds
from trimtab.model import namespace_of
from trimtab.plan import Merge, Move, Repair, Split
from trimtab.reasons import Reason
from trimtab.splitting.busy_topics import BusyTopic
from trimtab.splitting.triggers.limits import list_limits
from trimtab.wire.explanation import Nearest

_LIMITS: Final = MappingProxyType(
    {
        Reason.TOO_MANY_TOPICS: ("split.max_topics", "topics"),
        Reason.TOO_MANY_SESSIONS: ("split.max_sessions", "sessions"),
        Reason.TOO_MANY_MESSAGES: ("split.max_rate", "messages/s"),
        Reason.TOO_MUCH_TRAFFIC: ("split.max_throughput", "B/s"),
    }
)


def of_move(scene: Scene, move: Move) -> Cause | None:
    """The cause of a move; None if the strategy wanted it."""
    match move.reason:
        case Reason.DRAINED:
            why = f"{move.source} is to be emptied"
        case Reason.ASKED:
            why = "an operator asked for it"
        case Reason.DIVIDED:
            why = f"it is half of a bundle that was divided on {move.source}, and is placed again"
        case Reason.SPREAD_GROUP:
            why = f"{move.source} has more of its anti-affinity group than {move.destination}"
        case Reason.UNDONE:
            found = "; ".join(scene.plan.review.tripped.values())
            why = f"the plan that moved it to {move.source} did harm: {found}"
        case _:
            return None
    return Cause(move.reason, why)


def of_split(scene: Scene, split: Split) -> Cause:
    """The cause of a split: the bundle is too large."""
    if split.reason is Reason.ASKED:
        how = f", by {split.algorithm}" if split.algorithm else ""
        at = f" at {', '.join(f'{each:#010x}' for each in split.positions)}"
        return Cause(split.reason, f"an operator asked for it{how}{at if split.positions else ''}")
    path, unit = _LIMITS.get(split.reason, ("", ""))
    if not path:
        return Cause(
            split.reason,
            "alone on a broker it would still leave the others too far below: its halves need not",
            switch_setting(scene.settings, "split.trigger", "long-term", "it stays whole"),
        )
    settings, numbers = scene.settings, _numbers(scene, split)
    number, limit = numbers[split.reason]
    over = [reason for reason, (each, most) in numbers.items() if each > most]
    nearest: Nearest | None = None
    if over == [split.reason]:
        nearest = raise_setting(settings, path, number, "it stays whole")
    return Cause(
        split.reason,
        f"it has {amount(number, unit)}, and {amount(limit, unit)} are the most ({path})",
        nearest or switch_setting(settings, "split.enabled", False, "it stays whole"),
        {"found": number, "limit": limit},
    )


def _numbers(scene: Scene, split: Split) -> dict[Reason, tuple[float, float]]:
    """The figure compared with each limit, and the limit."""
    row = scene.bundle_row(split.bundle)
    if row is None:
        raise LookupError(f"{split.bundle} is to be divided and not in the view")
    bundles, limits = scene.view.bundles, scene.settings.split
    rates = bundles.stats if limits.trigger == "instantaneous" else bundles.long
    figures = list_limits(bundles.counts[:, [row]], rates[:, [row]], limits)
    return {reason: (float(figure[0]), float(most)) for reason, (figure, most) in figures.items()}


def advise_partitions(busy: BusyTopic) -> str:
    """What to do about a topic that no split lessens."""
    traffic = f"{amount(busy.throughput, 'B/s')} and {busy.rate:,.0f} messages/s"
    advice = "give the topic more partitions"
    if busy.topics == 1:
        return f"one topic carries it, {traffic} on {busy.broker}: {advice} ({busy.where} names it)"
    return (
        f"it has {traffic} on {busy.broker}, and to divide it did not help. If one topic carries "
        f"it, {advice} ({busy.where} names its {format_count(busy.topics, 'topic')}; "
        "pulsar-admin topics stats says what each carries)"
    )


def of_merge(scene: Scene, merge: Merge) -> Cause:
    """The cause of a merge of two neighbours."""
    settings = scene.settings
    namespace = namespace_of(merge.bundle)
    size, most = scene.view.sizes.get(namespace, 0), settings.split.max_bundles
    so_that = "both stay as they are"
    nearest = raise_setting(settings, "merge.share", size / max(most, 1), so_that)
    return Cause(
        merge.reason,
        f"{merge.bundle} and {merge.neighbour} become one: together they carry little, and "
        f"{namespace} has {size} of at most {format_count(most, 'bundle')} (split.max_bundles)",
        nearest or switch_setting(settings, "merge.enabled", False, so_that),
        {"bundles": size, "most": most},
    )


def of_repair(scene: Scene, repair: Repair) -> Cause:
    """The cause of a repair of a record."""
    record = scene.view.records.get(repair.bundle)
    owner = record.owner if record is not None else None
    deadline = scene.settings.round.move_deadline
    match repair.reason:
        case Reason.UNOWNED:
            why = "it was given up, and no broker has it"
        case Reason.OWNER_LOST:
            why = f"{owner} is lost"
        case Reason.STUCK:
            state = record.state if record is not None else "change"
            why = f"it has been {state} for longer than {seconds(deadline)} (round.move_deadline)"
        case Reason.READMITTED:
            why = "an operator lets it out of its quarantine"
        case Reason.CREATED:
            why = "an operator creates its namespace"
        case _:
            why = repair.reason.value
    then = f"{repair.broker} gets it" if repair.broker not in (None, owner) else ""
    if repair.broker is not None and repair.broker == owner:
        then = f"{repair.broker} keeps it"
    return Cause(repair.reason, f"{why}; {then}" if then else why)
