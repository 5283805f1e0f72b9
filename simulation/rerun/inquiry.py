"""A recorded round, run again to be asked why: by the batches that led to it, from an export."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from simulation.recorded import Missing, RecordedTopics
from simulation.rerun.run import Readers, Rerun
from simulation.rerun.span import Asked, Bound, find_span
from trimtab.explaining.scene import again
from trimtab.explaining.telling import explained, of_subject
from trimtab.explaining.witness import Witness
from trimtab.wire import keys
from trimtab.wire.explanation import Explanation


@dataclass(frozen=True, slots=True)
class Answer:
    """What a round made of a subject."""

    explanation: Explanation
    tried: Explanation | None
    """The same with the setting that would change it changed; None where there is none."""
    as_recorded: bool
    """Whether the round came out as the job recorded it."""


class _Round(msgspec.Struct):
    cluster: str
    round: int


class _Batch(msgspec.Struct):
    query: str
    batch: int
    rounds: tuple[_Round, ...] = ()


def explained_by_replay(
    readers: Readers, cluster: str, number: int, subject: str, query: str | None = None
) -> Answer:
    """Of a bundle or broker in round ``number``, the last of that number; ``query``: of this one.

    Raises Missing and Contradiction.
    """
    found = _batch_of(readers.of(keys.ROUNDS, 0), cluster, number, query)
    at = Bound(found.batch, is_number=True)
    span = find_span(readers.of(keys.ROUNDS, 0), Asked(at, at, found.query, cluster))
    rerun, as_recorded = Rerun(readers, span, cluster), True
    for step in rerun.steps():
        if step.batch.batch == found.batch:
            as_recorded = step.again.get(cluster) == step.recorded.get(cluster)
    witness = rerun.witness(cluster)
    if witness is None or witness.scene.number != number:
        raise Missing(f"round {number} of {cluster} did not come again from what is recorded")
    return _answered(witness, subject, as_recorded=as_recorded)


def _answered(witness: Witness, subject: str, *, as_recorded: bool) -> Answer:
    explanation, tried = of_subject(witness, subject), None
    if explanation.nearest is not None:
        changes: dict[str, object] = {explanation.nearest.setting: explanation.nearest.then}
        tried = explained(again(witness.scene, changes), subject)
    return Answer(explanation, tried, as_recorded)


def _batch_of(topics: RecordedTopics, cluster: str, number: int, query: str | None) -> _Batch:
    known: list[int] = []
    found = None
    for batch, held in _rounds(topics, query):
        if held.cluster == cluster:
            known.append(held.round)
            found = batch if held.round == number else found
    if found is None:
        among = f"rounds {known[0]} to {known[-1]} are" if known else "none is"
        raise Missing(f"round {number} of {cluster} is not recorded any more, or not yet: {among}")
    return found


def _rounds(topics: RecordedTopics, query: str | None) -> Iterator[tuple[_Batch, _Round]]:
    decoder = msgspec.json.Decoder(_Batch)
    low, high = topics.ends(keys.ROUNDS, 0)
    for record in topics.between(keys.ROUNDS, 0, low, high):
        batch = decoder.decode(record.value or b"")
        if query in {None, batch.query}:
            yield from ((batch, held) for held in batch.rounds)
