"""The faults, one row each, and how often each happens.

One pair of faults breaks the protocol, and happens only in a world that goes ``beyond`` it: a
failover to a replica that joined its master, and left it, between two requests (or after which the
store has forgotten everything). The old master does not know that it must hear from a replica, and
grants leases for as long as it lives.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Final, NamedTuple

from simulation.ownership.world import World


class Fault(NamedTuple):
    """A fault; ``weight``: how often it is drawn, relative to the others."""

    weight: float
    happen: Callable[[World], object]
    loses: bool = False
    """Whether changes that the store had accepted may be gone after it."""


def crash(world: World) -> None:
    host = world.a_host()
    if host not in world.acting:
        host.crash()


def leave(world: World) -> None:
    host = world.a_host()
    drain_s = 5.0 if world.rng.random() < 0.7 else 0.0
    world.act_as(host, lambda host: host.leave(drain_s))


def hang(world: World) -> None:
    world.a_host().hangs_until = world.clock.now + world.soon(8.0)


def cut(world: World) -> None:
    link = world.a_host().link
    link.cut = True
    world.clock.later(world.soon(8.0), lambda: setattr(link, "cut", False))


def twin(world: World) -> None:
    """Start a second process of a name, most often because the first one has a problem."""
    host = world.a_host()
    namesakes = [h for h in world.hosts if (h.cluster, h.name) == (host.cluster, host.name)]
    if len(namesakes) < _MOST_OF_A_NAME:
        ailing = world.rng.random()
        if ailing < 0.4:
            host.link.cut = True
            world.clock.later(world.soon(15.0), lambda: setattr(host.link, "cut", False))
        elif ailing < 0.7:
            host.hangs_until = world.clock.now + world.soon(15.0)
        world.clock.later(world.soon(2.0), lambda: world.add_host(host.name, host.cluster))


def cut_job(world: World) -> None:
    link = world.a_manager().link
    link.cut = True
    world.clock.later(world.soon(8.0), lambda: setattr(link, "cut", False))


def replace_job(world: World) -> None:
    """Start a new job; the previous one runs on until it notices."""
    world.add_manager()


def stop_relay(world: World) -> None:
    world.relay_from = world.clock.now + world.soon(20.0)


def restart_server(world: World) -> None:
    lost = [0, int(world.rng.integers(1, 50)), None][world.rng.integers(3)]
    world.faults[f"server lost {'all' if lost is None else 'some' if lost else 'none'}"] += 1
    world.stores.restart(lost)


def fail_over(world: World) -> None:
    lost = int(world.rng.integers(50)) if world.rng.random() < 0.6 else 0
    lives_on = bool(world.rng.random() < 0.6)
    parts = bool(world.rng.random() < 0.4) and (world.beyond or world.stores.knows_the_replica)
    if world.stores.fail_over(lost, lives_on=lives_on, parts=parts):
        world.faults[f"a master {'lives on' if lives_on else 'dies'} after a failover"] += 1


def hang_server(world: World) -> None:
    world.stores.fail_over(0, lives_on=True, hangs_s=world.soon(20.0))


def flush(world: World) -> None:
    world.stores.flush()


def delete_records(world: World) -> None:
    world.stores.delete_records()


def delete_lease(world: World) -> None:
    host = world.a_host()
    world.stores.delete_lease(host.cluster, host.name)


def delete_commands(world: World) -> None:
    host = world.a_host()
    world.stores.delete_commands(host.cluster, host.name)


def keep_a_snapshot(world: World) -> None:
    world.stores.keep_a_snapshot()


def restore_a_snapshot(world: World) -> None:
    world.stores.restore_the_snapshot()


def silence_replica(world: World) -> None:
    world.stores.silence_the_replica()


def step_clock(world: World) -> None:
    seconds = float(world.rng.uniform(1.0, 60.0))
    forward, masters = (world.rng.random(2) < (0.5, 0.7)).tolist()
    world.stores.step_clock(seconds if forward else -seconds, masters=masters)


_MOST_OF_A_NAME: Final = 3

FAULTS: Final = MappingProxyType(
    {
        "broker crashes": Fault(4, crash),
        "broker leaves": Fault(4, leave),
        "broker hangs": Fault(4, hang),
        "broker is cut off": Fault(4, cut),
        "broker starts twice": Fault(3, twin),
        "job is cut off": Fault(1, cut_job),
        "job is replaced": Fault(3, replace_job),
        "relay stops": Fault(2, stop_relay),
        "server restarts": Fault(0.8, restart_server, loses=True),
        "server fails over": Fault(1.5, fail_over, loses=True),
        "server hangs and wakes up": Fault(0.7, hang_server, loses=True),
        "server is flushed": Fault(0.3, flush, loses=True),
        "records are deleted": Fault(0.5, delete_records),
        "lease is deleted": Fault(1, delete_lease),
        "commands are deleted": Fault(1, delete_commands),
        "server's data are kept": Fault(0.5, keep_a_snapshot),
        "server goes back to kept data": Fault(0.3, restore_a_snapshot, loses=True),
        "replica is silent": Fault(0.7, silence_replica),
        "server's clock steps": Fault(1, step_clock),
    }
)

IN_TIME: Final = MappingProxyType({"relay stops": 0.0, "server's clock steps": 0.0})
"""Weights with which the journal's times are right."""
