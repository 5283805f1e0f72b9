"""One browser and one served cluster for the module: a prompt job with three brokers."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright
from pydantic import SecretStr
from redis import Redis

from api.app import create_app
from api.context import Context
from deploy.kafka_server import KafkaServer
from deploy.redis_server import RedisServer
from sinks.kafka.topics import ensure_topics
from streaming.config import JobConfig, KafkaConfig
from tests.agent.support import A, B
from tests.api.prompt_job import PromptJob
from tests.page.serving import PATIENCE_S, Served

MARKUP = "<img src=x onerror=document.title='run'>:8080"
"""A broker whose name would run a script if it were markup."""


@dataclass
class Opened:
    """A page, and what the browser complained of."""

    page: Page
    complaints: list[str] = field(default_factory=list)

    def note(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)


@pytest.fixture(scope="module")
def job(kafka: KafkaServer, redis_server: RedisServer) -> Iterator[PromptJob]:
    ensure_topics(kafka.bootstrap)
    config = JobConfig(
        kafka=KafkaConfig(bootstrap=kafka.bootstrap), redis_url=SecretStr(redis_server.url)
    )
    client = Redis.from_url(redis_server.url, protocol=2)
    name = f"page-{time.time_ns()}"
    with client, PromptJob(config, client, name, (A, B, MARKUP)) as prompt:
        yield prompt


@pytest.fixture(scope="module")
def served(job: PromptJob) -> Iterator[Served]:
    server = Served(create_app(Context(job, job.cluster_name)))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no chromium; Debian's package has that name")
    expect.set_options(timeout=1000 * PATIENCE_S)
    with sync_playwright() as play:
        # Containers run tests as root, and Chromium gives root no sandbox.
        started = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def opened(browser: Browser, served: Served, job: PromptJob) -> Iterator[Opened]:
    """The page of the cluster, once its first round is shown; afterwards the browser must not have
    complained."""
    context = browser.new_context(viewport={"width": 1360, "height": 900})
    context.set_default_timeout(1000 * PATIENCE_S)
    found = Opened(context.new_page())
    found.page.on("console", found.note)
    found.page.on("pageerror", lambda error: found.complaints.append(str(error)))
    found.page.goto(f"{served.url}#cluster={job.cluster_name}")
    expect(found.page.locator("#rows li")).to_have_count(3)
    yield found
    context.close()
    assert not found.complaints


@pytest.fixture
def page(opened: Opened) -> Page:
    return opened.page


@pytest.fixture
def files() -> Path:
    """The page's own files."""
    return Path(__file__).parents[2] / "api" / "page" / "files"
