"""How long a broker has been silent, and how long it may be."""

from __future__ import annotations

from trimtab.explaining.scene import Scene
from trimtab.explaining.words import seconds
from trimtab.state.pace import allowed_silence


def explain_silence(scene: Scene, broker: str) -> str:
    """What a silent broker has done, as a clause without its subject."""
    memory, settings = scene.memory, scene.settings
    if broker not in memory.appended:
        return f"has not reported for more than {seconds(settings.round.forget)} (round.forget)"
    silent = (max(memory.appended.values()) - memory.appended[broker]) / 1000
    pace = memory.paces.get(broker)
    allowed = seconds(allowed_silence(pace, settings.round))
    said = f"has not reported for {seconds(silent)}"
    if pace is None:
        return f"{said}, since its first report; up to {allowed} are allowed it"
    every = seconds(pace.mean / 1000)
    return f"{said}; it did so each {every}, and may be silent for {allowed} (round.silence)"
