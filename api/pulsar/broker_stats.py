"""/admin/v2/broker-stats: what a broker reports about itself (Pulsar BrokerStats)."""

from __future__ import annotations

from fastapi import APIRouter, Response

from api.context import InContext
from api.pulsar.brokers import leader
from api.refusal import RefusedRequest

broker_stats = APIRouter(prefix="/broker-stats", tags=["broker-stats"])


@broker_stats.get("/load-report")
def get_load_report(context: InContext, broker: str = "") -> Response:
    """The newest load report of ``broker``, as it reported it; without a name of the one that
    stands for the leader. Pulsar answers for the broker that is asked. 404 if it sent none lately.
    """
    last = context.cluster()
    wanted = broker or leader(last)
    found = context.plane.report_values(last, [wanted]).get(wanted)
    if found is None:
        raise RefusedRequest(404, f"{wanted} has sent no load report lately")
    return Response(found, media_type="application/json")
