"""Pulsar's own pulsar-admin has trimtab do what Pulsar's documents have it do, in their words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Thread

import pytest
import uvicorn
from pydantic import SecretStr
from redis import Redis

from api.app import create_app
from api.desk import Desk
from deploy.kafka_server import KafkaServer
from deploy.ports import answers, free_port
from deploy.redis_server import RedisServer
from sinks.kafka.topics import ensure_topics
from streaming.config import JobConfig, KafkaConfig
from tests.agent.support import A, B
from tests.api.prompt_job import PromptJob
from tests.support.pulsar_admin import pulsar_admin
from tests.support.waiting import eventually

WHOLE = "0x00000000_0xffffffff"
Run = Callable[[str], str]


@pytest.fixture
def run(kafka: KafkaServer, redis_server: RedisServer, admin_class_path: str) -> Iterator[Run]:
    """Runs a command against the API, and returns what it prints; it must succeed."""
    ensure_topics(kafka.bootstrap)
    settings = JobConfig(
        kafka=KafkaConfig(bootstrap=kafka.bootstrap), redis_url=SecretStr(redis_server.url)
    )
    port, client = free_port(), Redis.from_url(redis_server.url, protocol=2)
    with client, PromptJob(settings, client, "us-west", (A, B)) as job:
        for site in job.sites.values():
            site.broker.positions = [0x10000000, 0x30000000]
        app = create_app(Desk(job, "us-west", patience_s=0.0))
        server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None))
        thread = Thread(target=server.run)
        thread.start()
        eventually(lambda: answers("127.0.0.1", port), "the API", 30)
        with pulsar_admin(admin_class_path, f"http://127.0.0.1:{port}") as admin:

            def run(command: str) -> str:
                said = admin.run(command.split())
                assert said.exit == 0, (command, said)
                job.report(dict.fromkeys(job.held(), 4))
                return said.stdout

            yield run
        server.should_exit = True
        thread.join()


def test_what_the_documents_type_is_done(run: Run) -> None:
    """Items 002-05, 002-49, 002-56 to 60, 003-14, 003-15 and 003-25 to 27."""
    run("namespaces create my-tenant/my-namespace --clusters us-west --bundles 16")
    assert '"numBundles" : 16' in run("namespaces bundles my-tenant/my-namespace")
    run("namespaces unload my-tenant/my-namespace")

    run("namespaces create my-tenant/one --bundles 1")
    owner = run("topics lookup persistent://my-tenant/one/orders").strip()
    run(f"namespaces unload my-tenant/one -b {WHOLE}")
    assert run("topics lookup persistent://my-tenant/one/orders").strip() != owner
    run(f"namespaces unload my-tenant/one -b {WHOLE} -d {A if A in owner else B}")
    assert run("topics lookup persistent://my-tenant/one/orders").strip() == owner
    run(f"namespaces split-bundle --bundle {WHOLE} my-tenant/one")
    run("namespaces split-bundle -b LARGEST -san topic_count_equally_divide -u my-tenant/one")
    assert '"numBundles" : 3' in run("namespaces bundles my-tenant/one")

    run(f"clusters create-failure-domain us-west --domain-name north --broker-list {A}")
    run(f"clusters update-failure-domain us-west --domain-name north --broker-list {B}")
    assert B in run("clusters get-failure-domain us-west --domain-name north")
    assert "north" in run("clusters list-failure-domains us-west")
    run("clusters delete-failure-domain us-west --domain-name north")
    assert "north" not in run("clusters list-failure-domains us-west")

    run("namespaces set-anti-affinity-group my-tenant/one --group vip")
    assert run("namespaces get-anti-affinity-group my-tenant/one").strip() == "vip"
    listed = "namespaces get-anti-affinity-namespaces -c us-west -g vip -p my-tenant"
    assert "my-tenant/one" in run(listed)
    run("namespaces delete-anti-affinity-group my-tenant/one")
    assert "my-tenant/one" not in run(listed)
