"""The example broker, started as the kit starts any broker: it passes.

trimtab conformance "python -m admin.conformance.subject"
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

import msgspec

from admin.conformance import program
from agent.agent import Agent
from agent.example_broker import ExampleBroker
from agent.links import Links
from agent.logs import log_to_stderr
from agent.reports.outbox import Outbox
from agent.reports.producer import kafka_producer
from agent.running import wait_for_the_end
from agent.settings import AgentSettings
from sinks.redis.server.connections import redis_client
from trimtab.wire.reports.load_report import LocalBrokerData

_END_S: Final = 5.0


class Unreported:
    """Implements `agent.ports.Reports`: no Kafka is needed here."""

    def offer(self, data: LocalBrokerData, now: float) -> None: ...


def run(
    agent_class: type[Agent] = Agent, adapt: Callable[[Links], Links] = lambda links: links
) -> None:
    """Run until SIGTERM, told by the environment."""
    log_to_stderr()
    settings_of = os.environ
    mine = ExampleBroker(())
    settings = AgentSettings(
        settings_of[program.CLUSTER], settings_of[program.BROKER], mine.started_ms
    )
    outbox = Outbox(lambda: kafka_producer("127.0.0.1:1"))
    client = redis_client(settings_of[program.REDIS])
    links = adapt(replace(Links.of(settings, client, outbox), reporter=Unreported()))
    agent = agent_class(mine, settings, links)

    class Served(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            shown = {
                bundle: token
                for bundle in mine.bundles()
                if agent.serves(bundle) and (token := agent.token(bundle)) is not None
            }
            self.send_response(200)
            self.end_headers()
            self.wfile.write(msgspec.json.encode(shown))

        def log_message(self, *_: object) -> None: ...

    host, _, port = settings_of[program.SERVED].rpartition(":")
    server = ThreadingHTTPServer((host, int(port)), Served)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    agent.start()
    wait_for_the_end(agent)
    agent.stop()
    agent.join(_END_S)


if __name__ == "__main__":
    run()
