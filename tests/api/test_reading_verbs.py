"""Each verb that reads has a document for programs on stdout, and a table for people."""

from __future__ import annotations

import json

import msgspec
import pytest
from typer.testing import CliRunner, Result

from admin import cli
from admin.commands.rounds import list_changes
from admin.contexts import FILE_VARIABLE
from admin.exit_codes import FINDINGS, OK
from control.plane import ControlPlane
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from tests.agent.support import A
from tests.api.conftest import BUNDLES, CLUSTER
from tests.support.recorded_batches import held
from trimtab.wire.planned import PlannedMove, PlannedSplit, RefusedMove


@pytest.fixture(autouse=True)
def servers(
    plane: ControlPlane,
    kafka: KafkaServer,
    redis_server: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The plane's Kafka and Redis, and no contexts."""
    del plane
    monkeypatch.setenv(FILE_VARIABLE, "/nonexistent/contexts.toml")
    monkeypatch.setenv("TRIMTAB_KAFKA__BOOTSTRAP", kafka.bootstrap)
    monkeypatch.setenv("TRIMTAB_REDIS_URL", redis_server.url)


def typed(words: str, *more: str) -> Result:
    return CliRunner().invoke(
        cli.build_app(words.split()[:1]), [*words.split(), "--cluster", CLUSTER, *more]
    )


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (f"brokers describe {A}", "serving"),
        (f"bundles describe {BUNDLES[0]}", BUNDLES[0]),
        ("namespaces describe t/n", f"{A}  2"),
        ("policies list", "vip"),
        ("modes list", "automatic"),
        ("windows show", "open"),
        ("rounds show newest", ""),
        ("config show", "threshold.threshold"),
    ],
)
def test_it_answers_people_and_programs(words: str, shown: str) -> None:
    people, programs = typed(words), typed(words, "-o", "json")
    assert people.exit_code == programs.exit_code, people.output
    assert people.exit_code in (OK, FINDINGS), people.output
    assert shown in people.stdout
    # Nothing but the document is on stdout.
    json.loads(programs.stdout)


def test_what_a_round_did_is_a_line_each() -> None:
    move = PlannedMove(bundle="m", source="a", destination="b", reason="asked", epoch=(1, 1))
    split = PlannedSplit(bundle="s", broker="a", reason="asked", epoch=(1, 1))
    refused = RefusedMove(bundle="r", source="a", rule="pinned")
    record = msgspec.structs.replace(
        held("c"), moves=(move,), splits=(split,), refusals=(refused,), repairs=(), merges=()
    )
    told = [*list_changes(msgspec.json.decode(msgspec.json.encode(record)))]
    assert [
        [each[name] for name in ("what", "bundle", "from", "to", "because")] for each in told
    ] == [
        ["move", "m", "a", "b", "asked"],
        ["split", "s", "a", None, "asked"],
        ["refused", "r", "a", None, "pinned"],
    ]


def test_a_namespace_that_does_not_exist_is_told_with_those_near() -> None:
    told = typed("namespaces describe t/m")
    assert told.exit_code == 7
    assert "did you mean t/n?" in told.stderr
    assert told.stderr.endswith(f"Next: trimtab namespaces list --cluster {CLUSTER}\n")
