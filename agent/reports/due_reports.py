"""Tells a broker's load on a fixed schedule, and its service URLs when they change."""

from __future__ import annotations

import math

from agent.broker import Broker
from agent.links import Links
from agent.settings import AgentSettings
from trimtab.wire.lookup import ServiceUrls
from trimtab.wire.reports.load_report import LocalBrokerData


class DueReports:
    """One broker's reports and URLs; used by the agent's thread alone."""

    def __init__(self, broker: Broker, settings: AgentSettings, links: Links) -> None:
        self._broker, self._settings, self._links = broker, settings, links
        self.next_at = links.clock() + settings.report_offset
        """When the next report is due, by the agent's clock."""
        self.looked_at = links.clock()
        """When the load was last looked at for a report; at first, when the agent began."""
        self.load: LocalBrokerData | None = None
        """The load as of that look; None before the first."""
        self._urls = ServiceUrls()
        """The URLs in the last report."""
        self._urls_told: ServiceUrls | None = None
        self._urls_at = -math.inf
        """When they are told again, changed or not."""

    def report_if_due(self) -> None:
        """Offer a report if it is time; never waits."""
        now = self._links.clock()
        if now < self.next_at:
            return
        # Fixed schedule: a late report does not shift later ones, and missed ones are skipped.
        interval = self._settings.report_interval
        self.next_at += interval * (1 + (now - self.next_at) // interval)
        report = self.load = self._broker.load_report()
        self.looked_at = now
        self._urls = ServiceUrls(
            web=report.web_service_url or None,
            web_tls=report.web_service_url_tls or None,
            pulsar=report.pulsar_service_url or None,
            pulsar_tls=report.pulsar_service_url_tls or None,
        )
        self._links.reporter.offer(report, now)

    def tell_urls_if_due(self) -> None:
        """Write the URLs that lookups of all brokers name; raises the errors of Redis."""
        now = self._links.clock()
        if self._urls_told == self._urls and now < self._urls_at:
            return
        # Before the write: without the right to it, the agent does the rest of its work.
        self._urls_told, self._urls_at = self._urls, now + self._settings.urls_every
        self._links.urls.write(self._settings.cluster, self._settings.broker, self._urls)
