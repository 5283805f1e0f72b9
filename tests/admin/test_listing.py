"""The brokers and bundles of a cluster are listed as rounds and the store have them."""

from __future__ import annotations

import json

import msgspec
import pytest
from redis import Redis
from typer.testing import CliRunner

from admin import cli
from control import listing
from control.listing import BrokerRow, Wanted, list_brokers, list_bundles
from deploy.redis_server import RedisServer
from sinks.redis import bundle_index
from sinks.redis.bundle_index import BundleIndex
from sinks.redis.ownership_store import OwnershipStore
from tests.agent.support import A, B, Job
from tests.support.recorded_batches import held
from trimtab.ownership import Event, State
from trimtab.wire.command import CommandKind

NAMES = [f"t/{ns}/0x{i}0000000_0x{i + 1}0000000" for ns in ("a", "b", "b-2") for i in range(4)]


@pytest.fixture
def cluster(client: Redis, request: pytest.FixtureRequest) -> str:
    """Bundles by turns given to two brokers."""
    name = f"listed-{abs(hash(request.node.name)) % 10**8}"
    job = Job(client, name)
    for number, bundle in enumerate(NAMES):
        to = (A, B)[number % 2]
        job.ask(Event.ASSIGN, to, {to: CommandKind.OWN}, bundle=bundle)
    return name


def listed(client: Redis, cluster: str, wanted: Wanted, after: str = "") -> list[str]:
    found = list_bundles(cluster, wanted, after, OwnershipStore(client), BundleIndex(client))
    return [row.bundle for row in found]


@pytest.mark.parametrize("page", [2, 500])
def test_all_bundles_are_listed_by_name_however_they_are_read(
    client: Redis, cluster: str, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "_PAGE", page)
    everything = Wanted()
    assert listed(client, cluster, everything) == sorted(NAMES)
    assert listed(client, cluster, everything, after=sorted(NAMES)[4]) == sorted(NAMES)[5:]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Wanted(broker=A), NAMES[::2]),
        (Wanted(namespace="t/b"), NAMES[4:8]),
        (Wanted(namespace="t/b", broker=B), NAMES[5:8:2]),
        (Wanted(state=State.ASSIGNING), NAMES),
        (Wanted(state=State.OWNED), []),
        (Wanted(namespace="t/c"), []),
        (Wanted(broker="c:8080"), []),
    ],
)
def test_only_what_is_wanted_is_listed(
    client: Redis, cluster: str, wanted: Wanted, expected: list[str]
) -> None:
    assert listed(client, cluster, wanted) == sorted(expected)


@pytest.mark.parametrize("page", [1, 3, 500])
def test_each_namespace_is_named_once(
    client: Redis, cluster: str, page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle_index, "_PAGE", page)
    assert BundleIndex(client).namespaces(cluster) == ["t/a", "t/b", "t/b-2"]


def test_brokers_are_listed_the_busiest_first_with_what_they_own(
    client: Redis, cluster: str
) -> None:
    record = msgspec.structs.replace(
        held(cluster),
        usage={A: 0.2, B: 0.5},
        smoothed_usage={A: 0.3},
        draining=(A,),
        gone=("c:8080",),
    )
    assert list_brokers(record, OwnershipStore(client)) == [
        BrokerRow(B, "serving", 0.5, None, 6),
        BrokerRow(A, "draining", 0.2, 0.3, 6),
        BrokerRow("c:8080", "lost", None, None, 0),
    ]


def test_the_command_says_that_there_are_more(
    redis_server: RedisServer, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRIMTAB_REDIS_URL", redis_server.url)
    words = ["bundles", "list", "--cluster", cluster]
    some = CliRunner().invoke(cli.build_app(words[:1]), [*words, "--limit", "2", "-o", "json"])
    rows = json.loads(some.stdout)["bundles"]
    assert [row["bundle"] for row in rows] == sorted(NAMES)[:2]
    assert (rows[0]["owner"], rows[0]["state"]) == (A, "Assigning")
    assert f"--after {sorted(NAMES)[1]}" in some.stderr
    table = CliRunner().invoke(cli.build_app(words[:1]), [*words, "--namespace", "t/b-2"])
    assert all(name in table.stdout for name in NAMES[8:])
    names = CliRunner().invoke(
        cli.build_app(words[:1]), [*words, "--namespace", "t/b-2", "-o", "name"]
    )
    assert names.stdout.splitlines() == NAMES[8:]
    wide = CliRunner().invoke(
        cli.build_app(words[:1]), [*words, "--namespace", "t/b-2", "-o", "wide"]
    )
    assert "epoch" in wide.stdout.splitlines()[0]
