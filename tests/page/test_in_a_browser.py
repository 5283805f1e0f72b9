"""The page in Chromium: it shows rounds, decisions with their why and plans, and comes back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect
from redis import Redis

from api.app import Access, create_app
from api.context import Context
from api.tokens import Tokens
from deploy.redis_server import RedisServer
from sinks.redis.answers.explanations import Explanations
from tests.agent.support import A, B
from tests.api.prompt_job import PromptJob
from tests.page.conftest import MARKUP, Opened
from tests.page.serving import Served
from tests.support.examples import later
from tests.support.waiting import eventually
from trimtab.migration.migration import Target
from trimtab.store.ring import equal_edges
from trimtab.wire.explanation import Explanation, StoredExplanations
from trimtab.wire.intent import Intent, IntentKind
from trimtab.wire.keys import migrated_key
from trimtab.wire.rounds import RoundRecord

NAMESPACE = "t/ns"
BUNDLE = f"{NAMESPACE}/0x00000000_0x40000000"
WHY = "b had <b>room</b>"


@pytest.fixture(scope="module", autouse=True)
def namespace(job: PromptJob) -> None:
    """Four bundles, spread over the brokers."""
    positions = tuple(equal_edges(4)[1:-1])
    tell(job, "create", kind=IntentKind.NAMESPACE, name=NAMESPACE, positions=positions)


def tell(job: PromptJob, own_id: str, /, **members: Any) -> None:
    job.send(Intent(id=own_id, cluster=job.cluster_name, **members))


def owner(job: PromptJob, bundle: str = BUNDLE) -> str:
    return str(job.records(job.cluster_name, NAMESPACE)[bundle].owner)


def move(job: PromptJob, name: str) -> str:
    """Have a person move the bundle; its new owner."""
    to = B if owner(job) == A else A
    tell(job, name, kind=IntentKind.UNLOAD, bundle=BUNDLE, broker=to)
    assert owner(job) == to
    return to


def round_that_moved(job: PromptJob, to: str) -> RoundRecord | None:
    """The last round of those read so far, if it is the one that moves the bundle to ``to``."""
    last = next((each for each in job.rounds(job.cluster_name) if each.moves), None)
    return last if last and last.moves[-1].destination == to else None


def test_it_loads_and_names_every_broker_as_text(page: Page) -> None:
    names = page.locator("#rows .name > span")
    assert set(names.all_inner_texts()) == {A, B, MARKUP}
    expect(page.locator("#pulse")).to_contain_text("round")
    expect(page.locator("#figures")).to_contain_text("Range of usage")
    assert page.locator("img[src=x]").count() == 0
    assert page.title() == "trimtab"


def test_a_move_is_shown_once_it_is_recorded(page: Page, job: PromptJob) -> None:
    before = page.locator("#feed li").count()
    to = move(job, "shown")
    first = page.locator("#feed li").first
    expect(first).to_contain_text(f"→ {to}")
    expect(first).to_contain_text(BUNDLE)
    assert page.locator("#feed li").count() > before


def test_a_decision_opens_its_explanation(
    page: Page, job: PromptJob, redis_server: RedisServer
) -> None:
    to = move(job, "explained")
    moved = eventually(lambda: round_that_moved(job, to), f"a round that moves to {to}")
    told = Explanation(
        cluster=job.cluster_name,
        round=moved.round,
        at=moved.at,
        subject=BUNDLE,
        strategy="overload",
        verdict="moved",
        rule="operator",
        why=WHY,
        usage={to: (0.25, 0.5)},
    )
    with Redis.from_url(redis_server.url, protocol=2) as client:
        raw = msgspec.Raw(msgspec.json.encode(told))
        stored = StoredExplanations(
            cluster=job.cluster_name, round=moved.round, at=moved.at, keep=9, subjects={BUNDLE: raw}
        )
        Explanations(client).write(1, stored)
    page.locator("#feed li", has_text=f"→ {to}").first.locator("button").click()
    drawer = page.get_by_role("dialog")
    expect(drawer.locator(".lead")).to_have_text(WHY)
    expect(drawer).to_contain_text("25.0 %")
    page.keyboard.press("Escape")
    expect(drawer).to_have_count(0)


def test_a_migration_is_shown_while_its_topics_leave(page: Page, job: PromptJob) -> None:
    panel = page.get_by_role("region", name="Migrations")
    expect(panel).to_be_hidden()
    target = Target(serviceUrl="http://green:8080", brokerServiceUrl="pulsar://green:6650")
    tell(job, "to-green", kind=IntentKind.MIGRATION_START, scope=NAMESPACE, target=target)
    expect(panel).to_contain_text(f"{NAMESPACE} → http://green:8080")
    expect(panel.locator(".state")).to_have_text("running")
    expect(panel).to_contain_text("no topic is named yet")
    counted = migrated_key(job.cluster_name, "to-green")
    job._redis.hset(counted, mapping={f"{NAMESPACE} active": 3, f"{NAMESPACE} migrated": 1})
    expect(panel).to_contain_text("1 migrated, 3 active")
    panel.locator("summary").press("Enter")
    expect(panel.locator(".shares li")).to_contain_text("1 of 4")
    # Made again every two seconds: it stays open, and the keyboard stays where it was.
    job._redis.hset(counted, mapping={f"{NAMESPACE} active": 2, f"{NAMESPACE} migrated": 2})
    expect(panel.locator(".shares li")).to_contain_text("2 of 4")
    expect(panel.locator("summary")).to_be_focused()
    tell(job, "wait", kind=IntentKind.MIGRATION_PAUSE, migration="to-green", reason="a fair")
    expect(panel.locator(".state")).to_have_text("paused")
    expect(panel).to_contain_text("Paused by a person: a fair")


def test_a_broker_opens_with_what_it_owns(page: Page, job: PromptJob) -> None:
    page.locator("#rows .name", has_text=owner(job)).click()
    expect(page.get_by_role("dialog")).to_contain_text(BUNDLE)


def test_a_search_finds_brokers_bundles_and_namespaces(page: Page) -> None:
    page.keyboard.press("/")
    page.keyboard.type("onerror")
    expect(page.locator("#rows li")).to_have_count(1)
    page.locator("#search").fill(NAMESPACE)
    expect(page.locator("#rows li")).to_have_count(0)
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog").locator(".names li")).to_have_count(4)


def test_arrow_keys_go_from_row_to_row(page: Page) -> None:
    rows = page.locator("#rows .name")
    rows.first.focus()
    page.keyboard.press("ArrowDown")
    expect(rows.nth(1)).to_be_focused()


def test_a_plan_is_approved_and_carried_out(page: Page, job: PromptJob) -> None:
    source = owner(job)
    tell(job, "emptied", kind=IntentKind.DRAIN_PLAN, brokers=(source,))
    plan = page.locator("#plan-list .proposed")
    expect(plan).to_contain_text("hand-over")
    plan.get_by_role("button", name="Approve").click()
    page.get_by_role("button", name="Approve: ").click()
    expect(page.locator("#plans-said")).to_contain_text("done")
    expect(page.locator("#plan-list .plan").first).to_contain_text("done")
    assert owner(job) != source
    tell(job, "back", kind=IntentKind.UNDRAIN, broker=source)


def test_another_fleet_is_tried(page: Page, job: PromptJob) -> None:
    job.report(dict.fromkeys(job.records(job.cluster_name, NAMESPACE), 1))
    page.locator("#add").fill("2")
    page.get_by_role("button", name="Try").click()
    expect(page.locator("#outlook")).to_contain_text("after, 5 brokers")
    expect(page.locator("#outlook")).to_contain_text("Nothing is changed.")


def test_resources_are_shown_once_brokers_report(page: Page, job: PromptJob) -> None:
    job.report(dict.fromkeys(job.records(job.cluster_name, NAMESPACE), 1))
    page.reload()
    expect(page.locator("#rows .decides").first).to_contain_text("10")


def test_a_job_that_decides_nothing_is_told_with_since_when(page: Page) -> None:
    """A prompt job decides only while it is sent something, though a round is due each second."""
    expect(page.locator("#away")).to_contain_text("The job has decided no round, since")
    expect(page.locator("#rows li")).to_have_count(3)


def test_while_the_api_is_away_it_says_since_when_and_comes_back(
    opened: Opened, served: Served, job: PromptJob
) -> None:
    page = opened.page
    served.stop()
    expect(page.locator("#away")).to_contain_text("does not answer, since")
    expect(page.locator("#rows li")).to_have_count(3)
    assert page.locator("main").evaluate("main => getComputedStyle(main).filter") == "grayscale(1)"
    served.start()
    expect(page.locator("#away")).not_to_contain_text("does not answer")
    to = move(job, "back-again")
    expect(page.locator("#feed li").first).to_contain_text(f"→ {to}")
    # The browser itself notes each request that found no server.
    opened.complaints[:] = [each for each in opened.complaints if "ERR_" not in each]


@pytest.fixture
def guarded(job: PromptJob, tmp_path: Path) -> Iterator[Served]:
    """The same cluster behind tokens: a viewer's, and an operator's."""
    file = tmp_path / "tokens.toml"
    file.write_text(
        "".join(
            f'[[token]]\nname = "{name}"\nrole = "{name}"\n'
            f'sha256 = "{hashlib.sha256(name.encode()).hexdigest()}"\n'
            for name in ("viewer", "operator")
        )
    )
    tokens = Tokens(file, lambda: datetime.now(UTC))
    server = Served(create_app(Context(job, job.cluster_name), Access(tokens)))
    yield server
    server.stop()


def test_a_viewer_may_not_approve_and_an_operator_may(
    browser: Browser, guarded: Served, job: PromptJob
) -> None:
    tell(job, "seen", kind=IntentKind.DRAIN_PLAN, brokers=(owner(job),))
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{guarded.url}#cluster={job.cluster_name}")
    page.locator("#token").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.locator("#token-said")).to_have_text("That token is not in force.")
    page.locator("#token").fill("viewer")
    page.keyboard.press("Enter")
    plan = page.locator("#plan-list .proposed")
    expect(plan).to_contain_text("An operator's token may answer it.")
    assert plan.get_by_role("button").count() == 0
    page.get_by_role("button", name="viewer").click()
    page.locator("#token").fill("operator")
    page.keyboard.press("Enter")
    expect(plan.get_by_role("button", name="Approve")).to_be_visible()
    plan.get_by_role("button", name="Reject").click()
    page.get_by_role("button", name="Reject: ").click()
    expect(page.locator("#plans-said")).to_contain_text("done")
    context.close()


@pytest.mark.parametrize("theme", ["light", *later("dark")])
def test_axe_finds_nothing_serious(page: Page, theme: str) -> None:
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    no_findings(page)
    page.locator("#rows .name").first.click()
    expect(page.get_by_role("dialog")).to_contain_text("Owns")
    no_findings(page)


def no_findings(page: Page) -> None:
    found = Axe().run(page).response["violations"]
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    assert not serious, msgspec.json.format(msgspec.json.encode(serious)).decode()


def test_a_phone_has_no_sideways_scrolling(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    wide = "document.documentElement.scrollWidth"
    assert page.evaluate(wide) <= 360
    page.locator("#rows .name").first.click()
    expect(page.get_by_role("dialog")).to_contain_text("Owns")
    assert page.evaluate("document.querySelector('#drawer').scrollWidth") <= 360


def test_the_switch_keeps_its_theme(page: Page) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(ground)
    page.locator("#theme").click()
    assert page.evaluate(ground) != before
    page.reload()
    assert page.evaluate(ground) != before
