"""Explanations that every round emits: a sentence per command, and explanations of its subjects.

subjects, at most ``explain.subjects``: the hottest and the coldest broker and the largest bundle of
the hottest; bundles moved, split, merged and repaired, and the brokers involved; refused bundles
A round between two regular ones explains only its repairs and drains: many such rounds follow one
another when brokers are lost, and must not push out those that explain why a broker is hot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

import numpy as np

from trimtab.explaining.brokers import of_broker
from trimtab.explaining.bundles import of_bundle
from trimtab.explaining.rules.repairs import of_merge, of_repair, of_split
from trimtab.explaining.rules.skips import find_uncomputable
from trimtab.explaining.scene import Scene
from trimtab.explaining.witness import Witness
from trimtab.reasons import Rule
from trimtab.wire.explanation import Explanation, RoundExplanations

_SENTENCES: Final = 10_000
"""Limit: a round's record must fit a Kafka record, however much it moves."""


class Whys(NamedTuple):
    """A sentence for each bundle of the plan, for its commands, and the errors on the way."""

    of: Mapping[str, str]
    problems: tuple[str, ...] = ()


def whys(witness: Witness) -> Whys:
    """The sentences for all commands to be sent."""
    try:
        return Whys(dict(islice(_whys(witness), _SENTENCES)))
    except Exception as error:
        # A failed explanation must not stop the round.
        return Whys({}, (f"explain: {type(error).__name__}: {error}",))


def explanations(witness: Witness) -> RoundExplanations | None:
    """Explanations of the subjects; None if none are kept, or an extra round did nothing."""
    scene, explain = witness.scene, witness.scene.settings.explain
    if not (explain.rounds and explain.subjects):
        return None
    try:
        chosen = islice(dict.fromkeys(list_concerned(witness)), explain.subjects)
        subjects, problem = {name: of_subject(witness, name) for name in chosen}, ""
    except Exception as error:
        # As above.
        subjects, problem = {}, f"{type(error).__name__}: {error}"
    if scene.plan.skipped is Rule.REPAIR_ONLY and not (subjects or problem):
        return None
    return RoundExplanations(
        cluster=scene.view.cluster,
        round=scene.number,
        at=scene.now_ms,
        keep=explain.rounds,
        subjects=subjects,
        problem=problem,
    )


def explain(scene: Scene, subject: str) -> Explanation:
    """Explain any bundle or broker by name, even one unknown to the round."""
    return of_subject(Witness(scene), subject)


def of_subject(witness: Witness, subject: str) -> Explanation:
    """Explain a subject of a round whose witness exists already."""
    if subject in witness.scene.broker_rows or "/" not in subject:
        return of_broker(witness, subject)
    return of_bundle(witness, subject)


def _whys(witness: Witness) -> Iterator[tuple[str, str]]:
    scene = witness.scene
    for move in scene.plan.moves:
        yield move.bundle, witness.traded(move.source, move.destination)
    for split in scene.plan.splits:
        yield split.bundle, of_split(scene, split).why
    for merge in scene.plan.merges:
        yield merge.bundle, of_merge(scene, merge).why
    for repair in scene.plan.repairs:
        yield repair.bundle, of_repair(scene, repair).why


def list_concerned(witness: Witness) -> Iterator[str]:
    """The subjects' names in order of interest, some of them twice."""
    plan = witness.scene.plan
    if plan.skipped is not Rule.REPAIR_ONLY:
        yield from _extremes(witness)
    yield from (move.bundle for move in plan.moves)
    yield from (split.bundle for split in plan.splits)
    yield from (part for merge in plan.merges for part in merge.parts)
    yield from (repair.bundle for repair in plan.repairs)
    yield from (broker for move in plan.moves for broker in (move.source, move.destination))
    yield from (repair.broker for repair in plan.repairs if repair.broker is not None)
    yield from (refusal.bundle for refusal in plan.refusals)
    yield from (refusal.source for refusal in plan.refusals if refusal.source)


def _extremes(witness: Witness) -> Iterator[str]:
    scene, prediction = witness.scene, witness.prediction
    rows = scene.seen_brokers
    if prediction is None and scene.view.brokers.names:
        yield find_uncomputable(scene.view)
    if prediction is None or not rows.size:
        return
    names, bundles = scene.view.brokers.names, scene.shown.bundles
    loads = prediction.before[rows]
    hottest, coldest = int(rows[np.argmax(loads)]), int(rows[np.argmin(loads)])
    yield from (names[hottest], names[coldest])
    own = np.flatnonzero(bundles.owner == hottest)
    if own.size:
        yield bundles.names[int(own[np.argmax(prediction.sizes(own))])]
