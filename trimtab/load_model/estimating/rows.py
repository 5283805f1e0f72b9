"""Rows of estimates: found by the bundles' keys, taken out, put together, and rescaled."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from trimtab.arrays import Bools, Floats, Ints
from trimtab.load_model.estimating.estimates import Estimates, Keys


def begin_rows(keys: Keys, at_ms: Ints) -> Estimates:
    """Rows of bundles that have yet to be sampled, first reported at ``at_ms``."""
    columns: dict[str, Any] = {each.name: np.zeros(len(keys)) for each in fields(Estimates)}
    known = {"keys": keys, "at_ms": at_ms, "host": np.zeros_like(keys)}
    return Estimates(**columns | known | {"age": np.full(len(keys), np.inf)})


def take_rows(all_of: Estimates, at: Ints) -> Estimates:
    """The rows at the places ``at``, in that order."""
    return Estimates(**{each.name: getattr(all_of, each.name)[at] for each in fields(Estimates)})


def locate_keys(all_of: Estimates, keys: Keys) -> tuple[Ints, Bools]:
    """The places of ``keys`` in the estimates, and which of them are present."""
    if np.array_equal(all_of.keys, keys):
        return np.arange(len(keys)), np.ones(len(keys), np.bool_)
    return find_keys(keys, all_of.keys)


def locate_rows(all_of: Estimates, keys: Keys, order: Ints) -> Ints:
    """(m,) the places of bundles that are all present; ``keys`` ascend, and ``order`` has the row
    of each. In key order they are mostly exactly the estimates' keys, a fast path."""
    at = np.empty_like(order)
    at[order] = locate_keys(all_of, keys)[0]
    return at


def find_keys(some: Keys, keys: Keys) -> tuple[Ints, Bools]:
    """(k,) the places of ``some`` in ``keys``, which ascend, and which of them are there."""
    if not len(keys):
        return np.zeros(len(some), np.int64), np.zeros(len(some), np.bool_)
    at = np.minimum(np.searchsorted(keys, some), len(keys) - 1)
    return at, keys[at] == some


def are_among(some: Keys, keys: Keys) -> Bools:
    """(k,) which of ``some`` are among ``keys``, which ascend: `np.isin` would hash all of them."""
    return find_keys(some, keys)[1]


def replace_rows(column: Floats, rows: Ints, values: Floats | None = None) -> Floats:
    """(m,) the column with the ``values`` (m,) of another in some ``rows``, or with zeros there.

    Where the rows are few, far cheaper than `np.where`.
    """
    if not len(rows):
        return column
    column = column.copy()
    column[rows] = 0.0 if values is None else values[rows]
    return column


def join_rows(some: Estimates, others: Estimates) -> Estimates:
    """The rows of both, ascending by key."""
    whole = {
        each.name: np.concatenate((getattr(some, each.name), getattr(others, each.name)))
        for each in fields(Estimates)
    }
    return take_rows(Estimates(**whole), np.argsort(whole["keys"]))


def rescale(some: Estimates, factor: Floats | float) -> Estimates:
    """The rows with each bundle's shares multiplied by its ``factor``, (m,) or one for all."""
    return replace(
        some,
        level=np.minimum(some.level * factor, 1.0),
        rise=some.rise * factor,
        fall=some.fall * factor,
        last=some.last * factor,
        first=some.first * factor,
    )
