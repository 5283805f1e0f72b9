"""Settings of plans under control: who says that they run, when, and how much at once."""

from __future__ import annotations

from dataclasses import dataclass

from trimtab.settings.setting import setting
from trimtab.settings.units import DAY
from trimtab.settings.words import AUTOMATIC, MODES


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """Whether changes that strategies want are made, proposed or only shown."""

    mode: str = setting(
        AUTOMATIC,
        "",
        MODES,
        "automatic: they are carried out. propose: they are kept as a plan that a person may carry "
        "out. approve: the same, and nothing newer is planned until it is decided or expires. "
        "Repairs, and what operators ask for, do not wait. To only show them: round.observe_only.",
    )
    expiry: float = setting(
        3600.0,
        "s",
        (10.0, 30 * DAY),
        "A plan that is not approved by then expires, as does what of an approved one has not "
        "begun. Short: it expires unseen; long: it was made for load that has changed.",
    )
    windows: str = setting(
        "",
        "",
        None,
        "Times of the week, UTC, in which automatic changes may be made, or with `not` may not: "
        "`mon-fri 22:00-06:00`, `not fri 16:00-20:00`, comma-separated; empty: always. Few: a skew "
        "lasts until the next; repairs do not wait.",
    )
    broker_moves: int = setting(
        0,
        "moves",
        (0, 1_000_000),
        "Most moves of one round that touch one broker; 0: no limit. Low: a new broker fills in "
        "many rounds; high: all clients of a broker reconnect at once.",
    )
    minute_moves: int = setting(
        0,
        "moves",
        (0, 1_000_000),
        "Most moves of a minute in the whole cluster; 0: no limit. Low: a drain takes long; high: "
        "a wave of clients reconnects at once.",
    )
    tenant_moves: int = setting(
        0,
        "moves",
        (0, 1_000_000),
        "Most moves of a tenant's bundles in plans.tenant_period; 0: no limit. An intent sets "
        "another number for one tenant. Low: its bundles stay on hot or draining brokers; high: "
        "its clients reconnect often.",
    )
    tenant_period: float = setting(
        3600.0,
        "s",
        (60.0, 7 * DAY),
        "The time that a tenant's budget is for. Short: the budget hardly binds; long: one busy "
        "hour is paid for during days.",
    )
