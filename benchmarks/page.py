"""How smoothly the web page draws while a round of 1,000 brokers arrives every second.

`trimtab api` serves a cluster of 1,000 brokers with 100 bundles each. Headless Chromium shows the
200 busiest brokers, the most that the page ever shows at once. For half a minute a round is
published every second, in which the usage of every broker differs a little from the round before,
and each broker reports every ten seconds. The page reads and draws each round. Meanwhile the
browser counts, for each second, the frames that it has drawn. Chromium draws on the CPU, which it
shares with Kafka, Redis and the API.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import count, cycle, islice
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np
from playwright.sync_api import Page, expect, sync_playwright

from benchmarks.feed import reports
from benchmarks.figures import Bar, Figure, Limit, figure
from benchmarks.sampling import sampled
from benchmarks.served_fleet import ROUNDS, ServedFleet, round_batch, served_fleet
from benchmarks.synthetic import CLUSTER, NOW_MS
from sinks.kafka.pages import batch_records
from sinks.kafka.publisher import Outgoing, Publisher
from trimtab.wire.keys import LOAD_REPORTS

BROKERS: Final = 1_000
BUNDLES: Final = 100
SHOWN: Final = 200
SECONDS: Final = 30
REPORTS_EVERY_S: Final = 10
NOISE: Final = 0.01
_PATIENCE_MS: Final = 60_000
_COUNT: Final = """seconds => new Promise(resolve => {
  const counts = Array(seconds).fill(0), began = performance.now();
  const next = now => {
    const second = Math.floor((now - began) / 1000);
    if (second >= seconds) return resolve(counts);
    if (second >= 0) counts[second] += 1;
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
})"""


def measure(folder: Path) -> list[Figure]:
    """Count the frames of each second."""
    told = [
        Outgoing(LOAD_REPORTS, f"{CLUSTER}/{broker}", report)
        for broker, report in reports(BROKERS, seed=2)
    ]
    with served_fleet(folder, BROKERS, BUNDLES) as fleet, _opened(fleet) as page:
        before = _shown_round(page)
        with sampled(partial(next, _rounds(fleet, told)), every_s=1.0):
            counts = [float(each) for each in page.evaluate(_COUNT, SECONDS)]
        rounds = _shown_round(page) - before
    says = f"{BROKERS} brokers, {SHOWN} shown, {rounds} rounds drawn in {SECONDS} s"
    return [
        figure(
            "page.frames",
            median(counts),
            "frames a second",
            f"median; {says}",
            Bar(Limit.AT_LEAST, 30.0),
            {"frames": counts},
        ),
        figure("page.slowest", min(counts), "frames a second", "in the slowest second"),
    ]


@contextmanager
def _opened(fleet: ServedFleet) -> Iterator[Page]:
    """The page with as many brokers as it shows."""
    with sync_playwright() as play:
        # Containers run as root, and Chromium gives root no sandbox.
        chromium = shutil.which("chromium")
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        try:
            page = browser.new_page(viewport={"width": 1360, "height": 900})
            page.goto(f"{fleet.url}/#cluster={CLUSTER}", timeout=_PATIENCE_MS)
            rows = page.locator("#rows li")
            for number in range(50, SHOWN, 50):
                expect(rows).to_have_count(number, timeout=_PATIENCE_MS)
                page.locator("#more").click()
            expect(rows).to_have_count(SHOWN, timeout=_PATIENCE_MS)
            yield page
        finally:
            browser.close()


def _rounds(fleet: ServedFleet, told: Sequence[Outgoing]) -> Iterator[int]:
    """Each step publishes a round and the reports that are due of ``told``; the round's number."""
    rng, publisher, due = np.random.default_rng(2), Publisher(fleet.kafka), cycle(told)
    usual = rng.random(BROKERS)
    for number in count(ROUNDS):
        now = np.clip(usual + rng.normal(0.0, NOISE, BROKERS), 0.0, 1.0)
        usage = dict(zip(fleet.brokers, now.tolist(), strict=True))
        batch = round_batch(number, NOW_MS + 60_000 * number, usage)
        publisher.publish([*batch_records(batch), *islice(due, BROKERS // REPORTS_EVERY_S)])
        yield number


def _shown_round(page: Page) -> int:
    """The number of the round that the page's head names: "round 61 of 05:29:08"."""
    found = re.search(r"round (\d+)", page.locator("#pulse").text_content() or "")
    if found is None:
        raise RuntimeError("the page's head names no round")
    return int(found[1])
