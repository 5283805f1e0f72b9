"""One round of each of Pulsar's shedders compared with ours: same cluster, same moves, CPU time.

Pulsar's side is a small Java program, `benchmarks/peer/`. It calls the shedders of Pulsar 4.0.8 in
a JVM with 4 GiB of heap; ours are called in this process. Both get the same cluster, made from a
seed: 1,000 brokers with 100 bundles each, in the form in which Pulsar's leader and our job hold it
between rounds. Neither time includes reading reports. Rounds alternate, one of Pulsar's, one of
ours, and a warm-up is not counted. Pulsar's time is the CPU time of the calling thread, without the
JVM's collectors and compilers; ours is the CPU time of the whole process. In every turn the moves
must be equal: bundle, source and, where the strategy chooses it, destination, in the same order for
each broker.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.agreement import (
    Disagreement,
    Moves,
    differences,
    named,
    same_cluster,
    ties,
)
from benchmarks.figures import Bar, Figure, Limit, figure
from benchmarks.peer.process import Peer
from benchmarks.synthetic import CLUSTER, NOW_MS, Columns, columns, holdings, snapshots
from benchmarks.table import number
from trimtab.intake.assemble import assemble
from trimtab.settings import Settings
from trimtab.shedding import SHEDDERS
from trimtab.state.broker_averages import BrokerAverages, advance
from trimtab.state.round_state import Histories
from trimtab.view import View

BROKERS: Final = 1_000
BUNDLES: Final = 100
"""Bundles of each broker."""
SEED: Final = 1
HEAP: Final = "4g"

CONF: Final = {
    "loadBalancerAvgShedderHitCountHighThreshold": 1,
    "loadBalancerAvgShedderHitCountLowThreshold": 1,
    "loadBalancerSheddingConditionHitCountThreshold": 0,
    "loadBalancerSheddingBundlesWithPoliciesEnabled": True,
}
"""For both sides, by Pulsar's names: every round does its work instead of counting hits."""
SETTINGS: Final = Settings.parse(
    # Pulsar counts what a swap brings back in debug mode only.
    {**CONF, "transfer.credit_swaps": False, "transfer.checked_swaps": False}
)


@dataclass(frozen=True, slots=True)
class Match:
    """A shedder on both sides."""

    pulsar: str
    """Pulsar's class."""
    at_least: float
    """The bar: Pulsar's CPU time in units of ours."""
    rounds: int
    warm_up: int = 0
    aim: float | None = None
    ordered: bool = True
    """Whether Pulsar gives a broker's moves in an order."""


MATCHES: Final = {
    "avg": Match("AvgShedder", 500.0, rounds=3, aim=1500.0),
    "threshold": Match("ThresholdShedder", 500.0, rounds=4, aim=1500.0),
    "overload": Match("OverloadShedder", 1.0, rounds=5),
    "uniform": Match("UniformLoadShedder", 1.0, rounds=20, warm_up=10),
    "transfer": Match("TransferShedder", 0.1, rounds=200, warm_up=300, ordered=False),
}


def measure(folder: Path) -> list[Figure]:
    """Measure every shedder in turn."""
    return compare(columns(BROKERS, BUNDLES, SEED), folder)


def compare(made: Columns, folder: Path) -> list[Figure]:
    """Run all matches on one cluster; raises Disagreement."""
    view = view_of(made)
    equal = ties(view, SETTINGS.weights)
    if equal:
        raise Disagreement(f"ties decide, take another seed: {', '.join(equal)}")
    with Peer(made, CONF, folder, HEAP) as peer:
        same_cluster(view, SETTINGS.weights, peer.loaded.digest)
        return [_match(name, match, view, peer) for name, match in MATCHES.items()]


def view_of(made: Columns) -> View:
    """The view that the job would have in its first round."""
    view, _ = assemble(CLUSTER, snapshots(made), holdings(made))
    averages = advance(BrokerAverages(), view.brokers, SETTINGS.weights)
    return replace(view, brokers=replace(view.brokers, averages=averages), now_ms=NOW_MS)


def _match(name: str, match: Match, view: View, peer: Peer) -> Figure:
    shedder, history = SHEDDERS[name], Histories().of(name)
    theirs: list[float] = []
    ours: list[float] = []
    for _ in range(match.warm_up + match.rounds):
        other = peer.round(match.pulsar)
        started = time.process_time()
        sheds, history = shedder(view, history, SETTINGS)
        ours.append(time.process_time() - started)
        theirs.append(other.nanoseconds / 1e9)
        moves = named(sheds, view)
        _check(name, differences(moves, other.moves, match.ordered), bool(moves))
    return _figure(name, match, moves, theirs[match.warm_up :], ours[match.warm_up :])


def _check(name: str, differences: list[str], any_moved: bool) -> None:
    if differences:
        said = "\n".join(differences[:3])
        raise Disagreement(f"{name}: {len(differences)} brokers shed differently\n{said}")
    if not any_moved:
        raise Disagreement(f"{name}: nothing moved")


def _figure(
    name: str, match: Match, moves: Moves, theirs: list[float], ours: list[float]
) -> Figure:
    brokers = len({source for _, source, _ in moves})
    aim = f"; aim {match.aim:,.0f}" if match.aim else ""
    return figure(
        f"decisions.{name}",
        median(theirs) / median(ours),
        "times less CPU",
        f"{match.pulsar}: {number(1000 * median(theirs))} ms in Pulsar, "
        f"{number(1000 * median(ours))} ms here; {len(moves)} equal moves from {brokers} "
        f"brokers{aim}",
        Bar(Limit.AT_LEAST, match.at_least),
        {"Pulsar CPU s": theirs, "trimtab CPU s": ours},
    )
