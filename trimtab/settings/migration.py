"""Settings of blue-green migrations."""

from __future__ import annotations

from dataclasses import dataclass

from trimtab.settings.setting import Alias, setting


@dataclass(frozen=True, slots=True)
class MigrationSettings:
    """How topics go to another cluster."""

    check: float = setting(
        1.0,
        "s",
        (0.0, 3600.0),
        "Between two looks of a broker at each topic that migrates. Long: a consumer that is done "
        "waits for its redirect; short: brokers ask their topics all the time. 0, Pulsar's "
        "default: no topic is looked at, and what migrates stands still.",
        Alias("clusterMigrationCheckDurationSeconds", float),
    )
