"""The board's heaps against looking at every broker."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.fleets import Carried, fleets, ground_of, keeps
from trimtab.load_model.fleet import Fleet
from trimtab.planner.search.board import Board
from trimtab.planner.search.ground import Ground


class EveryBroker:
    """Answers as the board does, from all usages each time."""

    def __init__(self, board: Board, ground: Ground) -> None:
        self._usage = board.usage
        self._brokers: list[int] = ground.brokers.tolist()
        self._receivers: list[int] = ground.receivers.tolist()
        self.hot_aside: set[int] = set()
        self.cold_aside: set[int] = set()

    def bring_back(self, *brokers: int) -> None:
        self.hot_aside.difference_update(brokers)
        self.cold_aside.difference_update(brokers)

    def givers(self, most: int) -> list[int]:
        return sorted(self._brokers, key=lambda b: (-self._usage[b], b))[:most]

    def hottest(self) -> int | None:
        left = [b for b in self._brokers if b not in self.hot_aside]
        return min(left, key=lambda b: (-self._usage[b], b), default=None)

    def coldest(self) -> int | None:
        left = [b for b in self._receivers if b not in self.cold_aside]
        return min(left, key=lambda b: (self._usage[b], b), default=None)


@given(fleets(), st.data())
def test_the_heaps_find_what_a_look_at_every_broker_finds(
    fleet: Fleet, data: st.DataObject
) -> None:
    everybody = np.ones(len(fleet.usage), np.bool_)
    receives = np.array(data.draw(st.lists(st.booleans(), min_size=8, max_size=8)))
    receives = receives[: len(everybody)]
    ground = Ground.of(fleet, everybody, np.ones(len(fleet.size), np.bool_), receives)
    board = Board(ground, keeps(fleet))
    every = EveryBroker(board, ground)
    for act in data.draw(st.lists(st.sampled_from("mmmhc"), max_size=40)):
        hot, cold = every.hottest(), every.coldest()
        assert (board.hottest(), board.coldest()) == (hot, cold)
        most = data.draw(st.integers(1, 9))
        assert board.givers(most) == every.givers(most)
        if act == "h" and hot is not None:
            every.hot_aside.add(hot)
            board.set_aside_hottest()
        elif act == "c" and cold is not None:
            every.cold_aside.add(cold)
            board.set_aside_coldest()
        elif act == "m" and cold is not None:
            giver = data.draw(st.sampled_from(every.givers(3)))
            if giver != cold and board.may_give(giver):
                board.move(len(board.shelves[giver].rows) - 1, giver, cold)
                every.bring_back(giver, cold)


def test_a_broker_that_is_set_aside_may_still_fill_a_cold_one() -> None:
    fleet = Carried([[0.3, 0.3], [0.2], [0.1]]).fleet
    board = Board(ground_of(fleet), keeps(fleet))
    board.set_aside_hottest()
    assert board.hottest() == 1
    assert board.givers(2) == [0, 1]


def test_bundles_of_a_broker_are_listed_by_size_and_its_largest_is_known() -> None:
    fleet = Carried([[0.3, 0.1, 0.2], [], [0.2, 0.2]]).fleet
    ground = ground_of(fleet)
    assert ground.order.tolist() == [1, 2, 0, 3, 4]
    assert ground.largest.tolist() == [0.3, 0.0, 0.2]
    assert Board(ground, keeps(fleet)).shelves[0].rows == [1, 2, 0]
