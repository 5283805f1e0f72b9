"""A board as the JSON that Grafana reads; the same board is always the same text."""

from __future__ import annotations

from typing import Final

from grafana_foundation_sdk.builders import (
    common,
    dashboard,
    heatmap,
    prometheus,
    stat,
    statushistory,
    timeseries,
)
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import VisibilityMode
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DataSourceRef,
    FieldColorModeId,
    VariableRefresh,
)
from grafana_foundation_sdk.models.dashboard import Panel as Drawn
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from deploy.dashboards.board import Board, Kind, Panel
from trimtab.metrics import job

_SOURCE: Final = DataSourceRef(type_val="prometheus", uid="${datasource}")
_HEIGHT: Final = 8
"""Height of a panel, in Grafana's grid."""


def render(board: Board) -> str:
    """The text of its file."""
    made = (
        dashboard.Dashboard(board.title)
        .uid(board.uid)
        .description(board.asks)
        .tags(["trimtab"])
        .readonly()
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .time("now-1h", "now")
        .refresh("10s")
        .with_variable(
            dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus")
        )
        .with_variable(
            dashboard.QueryVariable("cluster")
            .label("Cluster")
            .datasource(_SOURCE)
            .query(f"label_values({job.BROKERS.exposed}, cluster)")
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
            .include_all(True)
            .all_value(".*")
            .multi(True)
        )
    )
    for title, panels in board.rows:
        made = made.with_row(dashboard.Row(title))
        for panel in panels:
            made = made.with_panel(_draw(panel))
    return JSONEncoder(sort_keys=True, indent=2).encode(made.build()) + "\n"


def _draw(panel: Panel) -> Builder[Drawn]:
    drawn = _of_kind(panel.kind)
    drawn = drawn.title(panel.title).description(panel.asks).unit(panel.unit.value)
    drawn = drawn.datasource(_SOURCE).height(_HEIGHT).span(panel.width)
    for query in panel.queries:
        target = prometheus.Dataquery().expr(query.expr).legend_format(query.legend)
        if panel.kind is Kind.BUCKETS:
            target = target.format(PromQueryFormat.HEATMAP)
        drawn = drawn.with_target(target.instant() if panel.kind is Kind.NUMBER else target.range())
    return drawn


def _of_kind(
    kind: Kind,
) -> heatmap.Panel | stat.Panel | statushistory.Panel | timeseries.Panel:
    by_value = dashboard.FieldColor().mode(FieldColorModeId.CONTINUOUS_GR_YL_RD)
    match kind:
        case Kind.BUCKETS:
            return heatmap.Panel()
        case Kind.DISTRIBUTION:
            return heatmap.Panel().calculate(True)
        case Kind.GRID:
            return (
                statushistory.Panel()
                .min(0)
                .max(1)
                .color_scheme(by_value)
                .show_value(VisibilityMode.NEVER)
            )
        case Kind.NUMBER:
            return stat.Panel()
        case Kind.LINES:
            return timeseries.Panel().min(0).fill_opacity(10).legend(common.VizLegendOptions())
