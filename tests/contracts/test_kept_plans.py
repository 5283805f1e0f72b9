"""Kept plans in a real Redis: the newest state of each, the last made first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from deploy.redis_server import RedisServer
from sinks.errors import Damaged
from sinks.redis.answers.kept_plans import KeptPlans
from sinks.redis.answers.outcomes import KEPT_S
from sinks.redis.server.connections import redis_client
from tests.support.plans import plan_for
from trimtab.kept_plans.life import PlanEvent
from trimtab.wire.keys import plan_key, plans_key


def test_a_plan_is_read_as_it_was_written_last(redis_server: RedisServer) -> None:
    with redis_client(redis_server.url) as client:
        plans, first = KeptPlans(client), plan_for("kept", "1-0001")
        plans.write([first, plan_for("kept", "2-0002", at=2)], 1_000)
        ended = first.after(PlanEvent.REJECT, by="ann")
        plans.write([ended], 2_000)
        assert plans.read("kept", "1-0001") == ended
        assert [each.id for each in plans.list("kept")] == ["2-0002", "1-0001"]
        assert plans.read("kept", "3-0003") is None
        assert plans.list("others") == []
        assert 0 < client.ttl(plan_key("kept", "1-0001")) <= KEPT_S


def test_the_index_forgets_plans_with_their_keys(redis_server: RedisServer) -> None:
    with redis_client(redis_server.url) as client:
        plans = KeptPlans(client)
        plans.write([plan_for("aged", "1-0001")], 1_000)
        plans.write([replace(plan_for("aged", "2-0002"), at=2)], 2_000 + 1000 * KEPT_S)
        assert client.zrange(plans_key("aged"), 0, -1) == [b"2-0002"]


def test_what_another_version_wrote_is_told(redis_server: RedisServer) -> None:
    with redis_client(redis_server.url) as client:
        client.set(plan_key("torn", "1-0001"), b"{")
        with pytest.raises(Damaged, match="another version"):
            KeptPlans(client).read("torn", "1-0001")
