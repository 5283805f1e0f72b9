"""A job's own settings as its batches record them, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import cast

from trimtab.intake.snapshot import IntakeSettings
from trimtab.settings import Settings
from trimtab.wire.rows import JobSettings


def told(intake: IntakeSettings, defaults: Settings) -> JobSettings:
    """For a record: `understood` gives equal values."""
    dumped = cast(dict[str, str | int | float | bool], defaults.dumped())
    return JobSettings(intake=asdict(intake), defaults=dumped)


def understood(settings: JobSettings) -> tuple[IntakeSettings, Settings]:
    """From a record; raises InvalidSettings where another version knew other settings."""
    return IntakeSettings.parse(settings.intake), Settings.parse(settings.defaults)
