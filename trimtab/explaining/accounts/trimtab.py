"""The account of trimtab's own planner: the range found, the range accepted, and the plan's result.

Each pool of brokers is planned separately: a bundle's pool decides on it.
"""

from __future__ import annotations

from typing import Final

from trimtab.explaining.accounts.cause import Cause
from trimtab.explaining.accounts.pool import PoolAccount
from trimtab.explaining.prediction import follow_history
from trimtab.explaining.scene import Scene
from trimtab.load_model.fleet import Fleet
from trimtab.planner.outlook import look_ahead
from trimtab.reasons import Rest

_LEARNING: Final = Cause(
    Rest.LEARNING,
    "no bundle has been reported twice yet, or many brokers have just come: noise may explain how "
    "far apart they are, or the planner waits for others that come",
)
_BUNDLE_RESERVED: Final = Cause(
    Rest.RESERVED, "fewer than two brokers may have it, or none of them may get more"
)
_BROKER_RESERVED: Final = Cause(
    Rest.RESERVED, "no other broker may have the bundles that it may, or none may get more"
)
_BROKER_UNMEASURED: Final = Cause(
    Rest.RESERVED,
    "it does not report the limit of a resource that is busy on other brokers: nothing tells how "
    "busy it is, so it gives nothing and gets nothing",
)


class TrimtabAccount:
    """The account of the planner."""

    fleet: Fleet

    def __init__(self, scene: Scene) -> None:
        self._scene, self._view = scene, scene.seen
        outlook, _ = look_ahead(scene.seen, follow_history(scene), scene.settings)
        self.fleet, self._unmeasured = outlook.fleet, outlook.unmeasured
        self._pools = [PoolAccount(scene, outlook, at) for at in range(len(outlook.prospects))]

    def moved(self, bundle: int) -> Cause:
        pool = self._pool_of_bundle(bundle)
        return self._without_pool(_BUNDLE_RESERVED) if pool is None else pool.acted

    def stayed(self, bundle: int) -> Cause:
        pool = self._pool_of_bundle(bundle)
        if pool is None:
            return self._without_pool(_BUNDLE_RESERVED)
        whole = pool.at_rest
        if whole is not None:
            return whole
        if self.fleet.size[bundle] <= 0:
            return Cause(Rest.NO_LOAD, "it carries no load: to move it would gain nothing")
        owner = self._view.brokers.names[int(self._view.bundles.owner[bundle])]
        return pool.not_chosen(owner)

    def broker(self, broker: int) -> Cause:
        if broker in self._unmeasured:
            return _BROKER_UNMEASURED
        pools = [each for each in self._pools if each.prospect.pool.brokers[broker]]
        if not pools:
            return self._without_pool(_BROKER_RESERVED)
        pool = max(pools, key=lambda each: each.prospect.beyond)
        whole = pool.at_rest
        if whole is not None:
            return whole
        takes_part = any(pool.traded(self._view.brokers.names[broker]))
        return pool.acted if takes_part else pool.left(broker)

    def _without_pool(self, reserved: Cause) -> Cause:
        return reserved if self.fleet.ready else _LEARNING

    def _pool_of_bundle(self, bundle: int) -> PoolAccount | None:
        for each in self._pools:
            pool = each.prospect.pool
            if pool.free[bundle] or (pool.grouped is not None and pool.grouped[bundle]):
                return each
        return None
