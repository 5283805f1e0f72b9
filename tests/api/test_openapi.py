"""Whatever fits the OpenAPI document, and much that does not, is answered as the document says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from pydantic import SecretStr
from redis import Redis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import status_code_conformance

from api.app import create_app
from api.context import Context
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from sinks.kafka.topics import ensure_topics
from streaming.config import JobConfig, KafkaConfig
from tests.agent.support import A, B
from tests.api.prompt_job import PromptJob


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
        yield schemathesis.openapi.from_asgi("/openapi.json", app)


paths = schemathesis.pytest.from_fixture("described")


@paths.parametrize()
@settings(max_examples=4, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_every_answer_is_described_and_none_is_a_failure(case: Any) -> None:
    case.call_and_validate(checks=[not_a_server_error, status_code_conformance])
