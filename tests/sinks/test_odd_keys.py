"""A key that somebody else has written is found by its name, whatever type it should have."""

from __future__ import annotations

import inspect

import pytest
import redis

from sinks.redis.odd_keys import OddKey, find_odd_keys
from trimtab.wire import keys

CLUSTER = "odd"
BUNDLE = "t/n/0x00000000_0xffffffff"
NAMES = {
    "broker": "}:why:round:1",
    "history": "h",
    "intent": "a:b",
    "plan": "p",
    "migration": "m",
    "namespace": "t/n",
    "number": "7",
}
"""What a key's function takes besides the cluster; the broker's name imitates another key."""

EVERY_KEY = {
    name: function(
        CLUSTER,
        *(NAMES[each] for each in inspect.signature(function).parameters if each != "cluster"),
    )
    for name, function in inspect.getmembers(keys, inspect.isfunction)
    if name.endswith("_key") or name == "command_stream"
}


def odd(client: redis.Redis) -> list[OddKey]:
    return [each for each in find_odd_keys(client) if each.cluster == CLUSTER]


@pytest.mark.parametrize("name", EVERY_KEY)
def test_a_key_of_a_wrong_type_is_named(client: redis.Redis, name: str) -> None:
    key = EVERY_KEY[name]
    kind = keys.kind_of(key)
    assert kind is not None
    client.rpush(key, "junk")
    assert odd(client) == [OddKey(key, CLUSTER, f"a list, not a {kind}")]
    client.delete(key)
    assert odd(client) == []


def test_so_is_a_record_that_cannot_be_read(client: redis.Redis) -> None:
    key = keys.ownership_key(CLUSTER)
    whole = '{"state":"Free","epoch":[1,1]}'
    client.hset(key, mapping={BUNDLE: "{", "t/m/0x00000000_0xffffffff": whole, keys.MARK: ""})
    assert odd(client) == [OddKey(key, CLUSTER, f"unreadable in its field {BUNDLE}")]
    client.delete(key)


def test_a_key_of_a_later_version_is_none_of_them(client: redis.Redis) -> None:
    client.set(f"trimtab:{{{CLUSTER}}}:later", "x")
    assert odd(client) == []
