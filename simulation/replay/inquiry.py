"""Replays a recorded round to explain it: from an export, through the batches that led to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from simulation.replay.batch_records import join_pieces
from simulation.replay.recorded import Missing, RecordedTopics
from simulation.replay.run import Readers, SpanReplay
from simulation.replay.span import Asked, Bound, find_span
from trimtab.explaining.scene import again
from trimtab.explaining.telling import explain, of_subject
from trimtab.explaining.witness import Witness
from trimtab.explaining.words import iso
from trimtab.wire import keys
from trimtab.wire.explanation import Explanation


@dataclass(frozen=True, slots=True)
class Answer:
    """The explanation of a subject in a round."""

    explanation: Explanation
    tried: Explanation | None
    """The explanation with the setting changed that would change the answer; None without one."""
    as_recorded: bool
    """Whether the round came out as the job recorded it."""


class _Round(msgspec.Struct):
    cluster: str
    round: int
    at: int


class _Batch(msgspec.Struct):
    query: str
    batch: int
    rounds: tuple[_Round, ...] = ()


def explain_by_replay(
    readers: Readers, cluster: str, wanted: Bound, subject: str, query: str | None = None
) -> Answer:
    """Explain a bundle or broker in the round with a number, or in the last one until a time.

    Of several such rounds it takes the newest, or that of ``query``.

    Raises Missing and Contradiction.
    """
    found, number = _batch_of(readers.of(keys.ROUNDS, 0), cluster, wanted, query)
    at = Bound(found.batch, is_number=True)
    span = find_span(readers.of(keys.ROUNDS, 0), Asked(at, at, found.query, cluster))
    replay, as_recorded = SpanReplay(readers, span, cluster), True
    for step in replay.steps():
        if step.batch.batch == found.batch:
            as_recorded = step.again.get(cluster) == step.recorded.get(cluster)
    witness = replay.witness(cluster)
    if witness is None or witness.scene.number != number:
        raise Missing(
            f"round {number} of {cluster} did not come out of its replay: trimtab replay "
            f"--from {found.batch} --to {found.batch} --query {found.query} shows the difference"
        )
    return _answered(witness, subject, as_recorded=as_recorded)


def _answered(witness: Witness, subject: str, *, as_recorded: bool) -> Answer:
    explanation, tried = of_subject(witness, subject), None
    if explanation.nearest is not None:
        changes: dict[str, object] = {explanation.nearest.setting: explanation.nearest.then}
        tried = explain(again(witness.scene, changes), subject)
    return Answer(explanation, tried, as_recorded)


def _batch_of(
    topics: RecordedTopics, cluster: str, wanted: Bound, query: str | None
) -> tuple[_Batch, int]:
    """The batch that ran the round, and the round's number."""
    known: list[int] = []
    found = None
    for batch, held in _rounds(topics, query):
        if held.cluster == cluster:
            known.append(held.round)
            is_it = held.round == wanted.at if wanted.is_number else held.at <= wanted.at
            found = (batch, held.round) if is_it else found
    if found is None:
        which = f"round {wanted.at} of {cluster}"
        if not wanted.is_number:
            which = f"what {cluster} held until {iso(wanted.at)}"
        among = (
            f"rounds {min(known)} to {max(known)} are" if known else "none is: is that its name?"
        )
        raise Missing(f"{which} is not recorded any more, or not yet: {among}")
    return found


def _rounds(topics: RecordedTopics, query: str | None) -> Iterator[tuple[_Batch, _Round]]:
    decoder = msgspec.json.Decoder(_Batch)
    low, high = topics.whole(keys.ROUNDS)
    for whole in join_pieces(topics.between(keys.ROUNDS, 0, low, high)):
        batch = decoder.decode(whole.value)
        if query in {None, batch.query}:
            yield from ((batch, held) for held in batch.rounds)
