"""``python -m simulation.traffic``: one broker in a process of its own, with its agent inside."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from agent.logs import log_to_stderr
from agent.lookup.server import Lookup
from agent.lookup.settling import LookupSettings
from agent.reports.host import HostSampler
from agent.running import running, wait_for_the_end
from agent.settings import AgentSettings
from simulation.traffic.admin import Admin
from simulation.traffic.migrating import MigratingBroker
from simulation.traffic.server import Server
from simulation.traffic.topic_log import TopicLog
from sinks.green_access import access_of_environment
from sinks.redis.migrations import Migrations
from sinks.redis.server.connections import redis_client
from trimtab.migration.migration import Target
from trimtab.wire.lookup import Answer, Avoid


def run(  # noqa: PLR0913 - the options of the command
    cluster: Annotated[str, typer.Argument(help="The cluster it belongs to.")],
    broker: Annotated[str, typer.Argument(help="Its id, host:port: where its admin listens.")],
    port: Annotated[int, typer.Argument(help="Where clients connect, on the same host.")],
    log: Annotated[Path, typer.Argument(help="The file of the cluster's topics.")],
    service_url: Annotated[str, typer.Argument(help="The cluster: http://host:port,host:port")],
    broker_service_url: Annotated[str, typer.Argument(help="pulsar://host:port,host:port")],
    kafka: Annotated[str, typer.Option(help="Bootstrap servers.")] = "127.0.0.1:9092",
    redis: Annotated[
        str, typer.Option(help="Redis's URL.", envvar="TRIMTAB_REDIS_URL")
    ] = "redis://127.0.0.1:6379/0",
    own: Annotated[list[str] | None, typer.Option(help="Bundles at the start.")] = None,
    needs: Annotated[int, typer.Option(help="The lowest client version that it takes.")] = 1,
    lease: Annotated[float, typer.Option(help="Seconds.")] = 10.0,
    state: Annotated[Path | None, typer.Option(help="File that keeps what was seen.")] = None,
) -> None:
    """Serve clients until SIGTERM or Ctrl-C."""
    log_to_stderr()
    host, _, web_port = broker.rpartition(":")
    home = Target(serviceUrl=service_url, brokerServiceUrl=broker_service_url)
    urls = f"http://{broker}", f"pulsar://{host}:{port}"
    topics, access = TopicLog(log, cluster), access_of_environment()
    mine = MigratingBroker(topics, own or (), HostSampler().sample, *urls, home, access)
    # It waits for nothing: other topics of a connection would wait too.
    settings = LookupSettings(cluster, broker, patience=0.0)
    migrations = Migrations(redis_client(redis))
    lookup = Lookup(settings, redis_client(redis), np.random.default_rng())

    def look_up(topic: str, avoid: Avoid | None) -> Answer:
        return lookup.lookup(topic, avoid=avoid)

    def find_owner(topic: str) -> Answer:
        return lookup.lookup(topic, here=True)

    server = Server(mine.desk, look_up, broker, (host, port), needs)
    admin = Admin(
        mine,
        find_owner,
        (host, int(web_port)),
        lambda: migrations.read(cluster).values(),
    )
    agents = AgentSettings(
        cluster,
        broker,
        mine.started_ms,
        report_interval=1.0,
        lease=lease,
        lease_margin=lease / 10,
        state=state,
    )
    with running(mine, agents, kafka, redis) as agent:
        mine.follow(agent.token, agent.green_for)
        server.start()
        admin.start()
        wait_for_the_end(agent)
    server.stop()
    admin.stop()


if __name__ == "__main__":
    typer.run(run)
