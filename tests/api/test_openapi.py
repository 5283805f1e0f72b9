"""Whatever fits the OpenAPI document, and much that does not, is answered as the document says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr
from redis import Redis
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup as CheckFailed
from schemathesis.specs.openapi.checks import status_code_conformance

from api.app import create_app
from api.context import Context
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from sinks.kafka.topics import ensure_topics
from streaming.config import JobConfig, KafkaConfig
from tests.agent.support import A, B
from tests.api.prompt_job import PromptJob

EXAMPLES = 2
"""Requests for each path and method."""
PATIENCE_S = 120
"""Of a request, on a machine that is busy with other tests."""
CHECKS = [not_a_server_error, status_code_conformance]
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)


@pytest.fixture(scope="module")
def described(kafka: KafkaServer, redis_server: RedisServer) -> Iterator[Any]:
    """The paths of an API whose job carries out each intent at once."""
    ensure_topics(kafka.bootstrap)
    config = JobConfig(
        kafka=KafkaConfig(bootstrap=kafka.bootstrap), redis_url=SecretStr(redis_server.url)
    )
    client = Redis.from_url(redis_server.url, protocol=2)
    name = f"described-{time.time_ns()}"
    with client, PromptJob(config, client, name, (A, B)) as job:
        job.report({})
        app = create_app(Context(job, name, patience_s=0.0))
        yield schemathesis.openapi.from_asgi("/openapi.json", app, timeout=PATIENCE_S)


def test_every_answer_is_described_and_none_is_a_failure(described: Any) -> None:
    found, problems = 0, []
    for each in described.get_all_operations():
        operation = each.ok()
        found += 1
        try:
            _try_out(operation)
        except CheckFailed as error:
            problems.append(f"{operation.label}: {error}")
    assert found > 60
    assert not problems, "\n\n".join(problems)


def _try_out(operation: Any) -> None:
    """Send a few requests of each kind: such as the document allows, and others."""

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=st.one_of(*map(operation.as_strategy, MODES)))
    def answers(case: Any) -> None:
        case.call_and_validate(checks=CHECKS, timeout=PATIENCE_S)

    answers()
