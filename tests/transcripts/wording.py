"""What was read, decided and commanded, one idea a line; bundles by their own names still."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from agent.commands.obeying import Obeyed
from trimtab.ownership import WITHOUT_OWNER
from trimtab.wire.command import Command
from trimtab.wire.explanation import Explanation
from trimtab.wire.intent import Intent
from trimtab.wire.ownership import Change, Record, TransitionOutcome
from trimtab.wire.planned import (
    ForecastRecord,
    PlannedMerge,
    PlannedMove,
    PlannedRepair,
    PlannedSplit,
)
from trimtab.wire.reports.load_report import LocalBrokerData
from trimtab.wire.rounds import RoundRecord, ShadowSide


def clock(ms: int) -> str:
    """Minutes and seconds."""
    minutes, seconds = divmod(ms // 1000, 60)
    return f"{minutes}:{seconds:02}"


def intent_line(intent: Intent) -> str:
    """As it was asked for; its id is made of its words."""
    return f"intent {intent.id}"


def report_line(broker: str, said: LocalBrokerData) -> str:
    """As a broker said it."""
    stats = said.last_stats if isinstance(said.last_stats, dict) else {}
    bundles = (f"{name} {each.msg_throughput_in / 1e6:.3g}" for name, each in stats.items())
    what = f"{', '.join(bundles)} MB/s" if stats else "no bundles"
    return f"report {broker} cpu {said.cpu.usage:.3g}%: {what}"


def change_lines(changes: Iterable[Change]) -> Iterator[str]:
    """What became of each bundle's record; bundles of the same fate together."""
    fates: dict[str, list[str]] = {}
    for change in changes:
        fates.setdefault(change.bundle, []).append(_state(change.record))
    together: dict[str, list[str]] = {}
    for bundle, states in fates.items():
        together.setdefault(", ".join(states), []).append(bundle)
    for fate, bundles in together.items():
        yield f"record {' '.join(bundles)}: {fate}"


def _state(record: Record) -> str:
    aim = f" to {record.destination}" if record.destination else ""
    unowned = record.state in WITHOUT_OWNER
    return record.state.value if unowned else f"{record.state.value} {record.owner}{aim}"


def round_lines(record: RoundRecord) -> Iterator[str]:
    """Everything that a round decided."""
    shares = ", ".join(f"{broker} {_percent(share)}" for broker, share in record.usage.items())
    range_ = record.summary.get("usage_range")
    found = "" if range_ is None else f", range {_percent(range_)}"
    yield f"round {record.round}: usage {shares or 'unknown'}{found}"
    yield from (f"  {line}" for line in _decided(record))


def _decided(record: RoundRecord) -> Iterator[str]:
    if record.skipped:
        yield f"skipped: {record.skipped}"
    yield from _about_brokers(record)
    yield from (f"left out: {n} {rule}" for rule, n in record.obstacles.items())
    yield from map(_repair, record.repairs)
    yield from map(_move, record.moves)
    yield from map(_split, record.splits)
    yield from map(_merge, record.merges)
    yield from (
        f"refused {each.bundle} from {each.source}: {each.rule}" for each in record.refusals
    )
    yield from _about_plans(record)
    yield from (f"problem: {problem}" for problem in record.problems)


def _about_brokers(record: RoundRecord) -> Iterator[str]:
    if record.doubt != "stable":
        yield f"doubt {record.doubt}: {', '.join(record.causes)}"
    states = {"gone": record.gone, "draining": record.draining, "held back": record.held_back}
    yield from (f"{state}: {' '.join(brokers)}" for state, brokers in states.items() if brokers)
    if record.unserved:
        yield f"unserved: {record.unserved} bundles"


def _about_plans(record: RoundRecord) -> Iterator[str]:
    """What came of earlier ones, and of the shadow's."""
    for done in record.settled:
        yield (
            f"settled {done.bundle} of round {done.round}: "
            f"{done.source} {_came(done.left)}, {done.destination} {_came(done.joined)}"
        )
    for cause, found in record.tripped.items():
        yield f"breaker trips, {cause}: {found}"
    if record.frozen_until:
        yield f"frozen for {clock(record.frozen_until - record.at)}"
    yield from (f"the way back: {_move(each)}" for each in record.undo)
    if record.shadow is not None:
        yield f"in charge {_side(record.shadow.champion)}"
        yield f"shadow {_side(record.shadow.challenger)}"


def _came(found: ForecastRecord) -> str:
    return f"{_percent(found.realised)} ({_percent(found.predicted)} predicted)"


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


def _side(side: ShadowSide) -> str:
    found = "none" if side.range is None else _percent(side.range)
    return f"{side.strategy}: range {found}, {side.moves} moves, {side.total_moves} so far"


def _why(planned: PlannedMove | PlannedSplit | PlannedMerge | PlannedRepair) -> str:
    return f"{planned.reason}; {planned.why}" if planned.why else planned.reason


def _move(move: PlannedMove) -> str:
    return f"move {move.bundle} from {move.source} to {move.destination}: {_why(move)}"


def _split(split: PlannedSplit) -> str:
    return f"split {split.bundle} on {split.broker}: {_why(split)}"


def _merge(merge: PlannedMerge) -> str:
    return f"merge {merge.bundle} and {merge.neighbour} on {merge.broker}: {_why(merge)}"


def _repair(repair: PlannedRepair) -> str:
    to = f" {repair.broker}" if repair.broker else ""
    return f"repair {repair.bundle}: {repair.event}{to}, {_why(repair)}"


def refusal_lines(outcomes: Sequence[TransitionOutcome]) -> Iterator[str]:
    """What the store did not do."""
    for each in outcomes:
        if not each.accepted and each.reason is not None:
            yield f"store refuses {each.bundle}: {each.reason.value}"


def command_line(command: Command, ended: Obeyed | None) -> str:
    """What a broker was told, and what it did about it."""
    words = [f"command {command.broker}: {command.kind.value} {command.bundle}"]
    if command.neighbour:
        words.append(f"and {command.neighbour}")
    if command.destination and command.destination != command.broker:
        words.append(f"to {command.destination}")
    if command.source and command.source != command.broker:
        words.append(f"from {command.source}")
    words.append(f"({'not obeyed' if ended is None else ended.value})")
    return " ".join(words)


def explanation_lines(told: Explanation) -> Iterator[str]:
    """The answer to why."""
    yield f"{told.subject} {told.verdict} ({told.rule}): {told.why}"
    for option in told.options:
        if option.usage is not None:
            bar = f", but {option.bar}" if option.bar else ""
            yield f"  on {option.broker} that would be at {_percent(option.usage)}{bar}"
    if told.nearest is not None:
        near = told.nearest
        yield f"  with {near.setting} {near.then} instead of {near.now}: {near.so_that}"
