"""The Grafana boards as code: ``python -m deploy.dashboards`` writes deploy/grafana/dashboards/.

Needs the development requirements. Every metric is named by the catalogue (`trimtab.metrics`).
"""
