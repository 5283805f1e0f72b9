"""Converts a job's own settings to what its batches record, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import cast

from trimtab.intake.snapshot import IntakeSettings
from trimtab.settings import Settings
from trimtab.shedding import DEFAULTS
from trimtab.wire.rounds import JobSettings


def to_record(intake: IntakeSettings, defaults: Settings) -> JobSettings:
    """The settings as a record holds them; `understood` returns equal values."""
    dumped = cast(dict[str, str | int | float | bool], defaults.dumped())
    return JobSettings(intake=asdict(intake), defaults=dumped)


def from_record(settings: JobSettings) -> tuple[IntakeSettings, Settings]:
    """The settings from a record; raises InvalidSettings if another version had other ones."""
    return IntakeSettings.parse(settings.intake), DEFAULTS.changed(settings.defaults)
