"""Which setting would make trimtab's own planner act where it rested, or rest where it acted."""

from __future__ import annotations

from trimtab.explaining.nearest import closest, find_setting
from trimtab.explaining.prediction import history_before
from trimtab.explaining.scene import Scene
from trimtab.planner.outlook import Outlook, look_ahead
from trimtab.planner.trigger import widest
from trimtab.settings import Settings
from trimtab.wire.explanation import Nearest


def flip_range(
    scene: Scene, outlook: Outlook, at: int, so_that: str, *, rests: bool
) -> Nearest | None:
    """The nearest setting with which pool number ``at`` ``rests``, or does not."""
    prospect = outlook.prospects[at]

    def changes(settings: Settings) -> bool:
        pair = widest(prospect.ground, settings, outlook.unrest)
        return (prospect._replace(pair=pair).beyond <= 0) is rests

    target = find_setting(scene.settings, "planner.target", rests, changes, so_that)
    chance = find_setting(scene.settings, "planner.false_moves", not rests, changes, so_that)
    best = closest(target, chance)
    if best is None or best is not chance or _stands(scene, outlook, at, best, rests=rests):
        return best
    return closest(target)


def _stands(scene: Scene, outlook: Outlook, at: int, nearest: Nearest, *, rests: bool) -> bool:
    """Whether the false-move rate, which also affects level shifts, has the effect."""
    changed = scene.settings.changed({nearest.setting: nearest.then})
    prospects = look_ahead(scene.seen, history_before(scene), changed)[0].prospects
    same = len(prospects) == len(outlook.prospects)
    return same and (prospects[at].beyond <= 0) is rests
