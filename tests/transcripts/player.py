"""Plays a story: what its lines say happens to a fleet, batch by batch, beside a job.

a batch:
  brokers renew their leases and report
  the job reads what was reported, intended and journalled since the last one
  brokers obey; what they change of the records is journalled for the next one
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count, groupby
from pathlib import Path
from typing import Final

import msgspec

from simulation.ownership.redis.server import MemoryServer
from sources.records import Record
from tests.transcripts.fleet import CLUSTER, Fleet
from tests.transcripts.intents import parse_intent, parse_value
from tests.transcripts.job import Job
from tests.transcripts.story import Story, parse, render, with_outputs
from tests.transcripts.wording import change_lines, clock, command_line, intent_line, report_line
from trimtab.wire import keys
from trimtab.wire.intent import Intent
from trimtab.wire.reports.load_report import encode

FOLDER: Final = Path(__file__).parents[1] / "golden" / "transcripts"
EPOCH_MS: Final = 1_800_000_000_000
MINUTE_MS: Final = 60_000
_ALL: Final = 10_000
"""Changes of the journal that a batch reads at most."""


def retell(path: Path) -> str:
    """A story's text as today's code tells it."""
    return render(play(parse(path.read_text())))


def play(story: Story) -> Story:
    """The story with the outputs of today's code."""
    first, *others = story.blocks
    player = Player(first.lines)
    outputs = [player.fleet.names.legend(), *(player.play(block.lines) for block in others)]
    return with_outputs(story, outputs)


class Player:
    """One story in the middle of it."""

    def __init__(self, lines: Sequence[str]) -> None:
        """``lines``: of the first block."""
        self._at_ms = EPOCH_MS
        self._server = MemoryServer(lambda: self._at_ms)
        settings, held = _beginning(lines)
        self._job = Job(self._server, settings)
        self.fleet = Fleet(self._server, held)
        self._intents: list[Intent] = []
        self._offsets = count()
        self._verbs: Mapping[str, Callable[..., Iterable[str] | None]] = {
            "load": self.fleet.set_load,
            "extra": self.fleet.set_extra,
            "noise": self.fleet.set_noise,
            "disobey": self.fleet.disobey,
            "obey": self.fleet.obey_again,
            "crash": self._crash,
            "return": self._return,
            "intent": self._intend,
            "batch": self._batch,
            "again": self._job.again,
            "why": self._why,
        }

    def play(self, lines: Sequence[str]) -> list[str]:
        """What comes of a block, in short names."""
        told: list[str] = []
        for line in lines:
            verb, *words = line.split()
            told += self._verbs[verb](*words) or ()
        return [self.fleet.names.short(line) for line in told]

    def _crash(self, broker: str) -> None:
        self.fleet.crash(broker)
        self._intend("broker-lost", broker)

    def _return(self, broker: str) -> None:
        self.fleet.start_again(broker)
        self._intend("broker-joined", broker)

    def _intend(self, *words: str) -> None:
        self._intents.append(parse_intent(CLUSTER, words))

    def _why(self, subject: str) -> Iterator[str]:
        return self._job.why(self.fleet.names.real(subject))

    def _batch(self, first: str, _to: str = "to", last: str = "") -> Iterator[str]:
        if not last:
            yield from self._run(_ms(first))
            return
        batches = ((at, [*self._run(at)]) for at in range(_ms(first), _ms(last) + 1, MINUTE_MS))
        for _, group in groupby(batches, lambda batch: [*map(_unnumbered, batch[1])]):
            (at, told), *alike = group
            yield f"at {clock(at)}"
            yield from told
            if alike:
                yield f"and {len(alike)} more like it"

    def _run(self, at: int) -> Iterator[str]:
        self._at_ms = EPOCH_MS + at
        self.fleet.renew_leases()
        records = []
        for broker, said in self.fleet.reports():
            yield report_line(broker, said)
            records.append(self._record(keys.LOAD_REPORTS, f"{CLUSTER}/{broker}", encode(said)))
        for intent in self._intents:
            yield intent_line(intent)
            records.append(self._record(keys.CONTROL, CLUSTER, msgspec.json.encode(intent)))
        changes = self._server.take_journal(CLUSTER, _ALL)
        yield from change_lines(changes)
        records += [self._record(keys.OWNERSHIP, CLUSTER, msgspec.json.encode(c)) for c in changes]
        self._intents = []
        yield from self._job.run(self._at_ms, records)
        for command, ended in self.fleet.obey():
            yield command_line(command, ended)

    def _record(self, topic: str, key: str, value: bytes) -> Record:
        return Record(topic, 0, next(self._offsets), self._at_ms, key.encode(), value)


def _beginning(lines: Sequence[str]) -> tuple[dict[str, object], dict[str, dict[str, float]]]:
    """Settings by name, and what each broker holds."""
    settings: dict[str, object] = {}
    held: dict[str, dict[str, float]] = {}
    for verb, name, *words in map(str.split, lines):
        match verb:
            case "set":
                settings[name] = parse_value(words[0])
            case "broker":
                held[name] = _bundles(words)
            case _:
                raise ValueError(f"{verb!r} says nothing of a fleet")
    return settings, held


def _bundles(words: Iterable[str]) -> dict[str, float]:
    """``b0 20, b1 20``"""
    pairs = " ".join(words).split(",") if words else []
    return {bundle: float(figure) for bundle, figure in map(str.split, pairs)}


def _ms(at: str) -> int:
    minutes, seconds = at.split(":")
    return MINUTE_MS * int(minutes) + 1000 * int(seconds)


def _unnumbered(line: str) -> str:
    return re.sub(r"^round \d+", "round", line)
