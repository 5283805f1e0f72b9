"""Whatever the job asks and whenever two agents come to obey, at most one of them serves."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import count

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from redis import Redis

from agent.commands.actions import obey
from tests.agent.support import BUNDLE, HALVES, A, B, Job, NotPossible, Site
from trimtab.ownership import SERVING

_example = count()

JOB: dict[str, Callable[[Job], None]] = {
    "assign a": lambda job: job.assign(A),
    "assign b": lambda job: job.assign(B),
    "unload": lambda job: job.unload(job.record().owner or A),
    "a to b": lambda job: job.transfer(A, B),
    "b to a": lambda job: job.transfer(B, A),
    "keep": lambda job: job.keep(),
    "split": lambda job: job.split(job.record().owner or A),
    "merge": lambda job: job.merge(job.record(HALVES[0]).owner or A),
    "half to b": lambda job: job.transfer(A, B, HALVES[1]),
    "half to a": lambda job: job.transfer(B, A, HALVES[1]),
    "keep a half": lambda job: job.keep(HALVES[0]),
    "keep the other": lambda job: job.keep(HALVES[1]),
}
AGENTS: dict[str, Callable[[Site, Site], object]] = {
    "a obeys": lambda a, _: a.obey(),
    "b obeys": lambda _, b: b.obey(),
    "a repeats": lambda a, _: [obey(a.obeyer, command) for command in a.seen],
    "b repeats": lambda _, b: [obey(b.obeyer, command) for command in b.seen],
}


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(events=st.lists(st.sampled_from([*JOB, *AGENTS]), max_size=25))
@example(events=["assign a", "a obeys", "b to a", "b obeys", "assign b"])
@example(events=["assign a", "a obeys", "split", "a obeys", "merge", "a obeys", "a repeats"])
@example(events=["assign a", "a obeys", "split", "a obeys", "merge", "keep the other", "a obeys"])
def test_at_most_one_serves_and_it_is_the_owner(client: Redis, events: list[str]) -> None:
    job = Job(client, f"one-owner-{next(_example)}")
    sites = {broker: Site(client, job.cluster, broker) for broker in (A, B)}
    for event in [*events, "a obeys", "b obeys", "a obeys"]:
        if event in JOB:
            with suppress(NotPossible):
                JOB[event](job)
        else:
            AGENTS[event](sites[A], sites[B])
        record = job.record()
        serving = [broker for broker, site in sites.items() if site.holdings.serves(BUNDLE)]
        assert serving in ([], [record.owner]), (event, record)
        for half in HALVES:
            both = [broker for broker, site in sites.items() if site.holdings.serves(half)]
            assert both in ([], [job.record(half).owner]), (event, half)
    # Every command is obeyed by now: what the record says is what is so.
    assert bool(serving) == (record.state in SERVING)
