"""`make model`: every model to the end of its state space, and every counterexample.

python -m model.check [--small] [--without FLAG]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from model.counterexample import tell_steps
from model.models import MODELS, Cure, Model, Promise
from model.spin import INSTALL, Found, Search, lacking

BUILD: Final = Path("build/model")

_ALONE: Final = {
    Promise.ONE_OWNER: ("NO_WAY_BACK", "NO_ONE_EPOCH"),
    Promise.ONE_EPOCH: ("NO_WAY_BACK",),
    Promise.WAY_BACK: (),
}
"""The other promises are left out, where they would be broken first."""

_ROW: Final = "{:<14}{:<24}{:>12}{:>10}{:>8}  {}"


def small(model: Model, build: Path = BUILD) -> Found:
    """The search with all cures on, within the bound that CI uses."""
    return Search.built(model.file, model.small, build / model.name).run()


def whole(model: Model) -> Iterator[Found]:
    """The searches with all cures on, within the full bound."""
    for flags in model.full:
        yield Search.built(model.file, flags, BUILD / model.name, fast=True).run()


def without(model: Model, cure: Cure, build: Path = BUILD) -> tuple[Search, Found]:
    """The search for what happens with one cure off."""
    flags = (cure.flag, *cure.bound, *_ALONE[cure.breaks])
    search = Search.built(model.file, flags, build / f"{model.name}-{cure.flag}")
    return search, search.run(cure.depth)


def main() -> int:
    """The table; 1 if a promise is broken, or kept where it should not be."""
    asked = _arguments()
    missing = lacking()
    if missing:
        print(f"{' and '.join(missing)} missing: {INSTALL}")
        return 1
    print(_ROW.format("model", "without", "states", "seconds", "MB", ""))
    if asked.without:
        return _one(asked.without)
    fine = [
        _checked(model, found)
        for model in MODELS
        for found in ([small(model)] if asked.small else whole(model))
    ]
    fine += [_broken(model, cure) for model in MODELS for cure in model.cures]
    return 0 if all(fine) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m model.check", description=__doc__)
    parser.add_argument("--small", action="store_true", help="the bounds that CI searches")
    parser.add_argument(
        "--without", metavar="FLAG", help="tell the schedule that one cure prevents"
    )
    return parser.parse_args()


def _checked(model: Model, found: Found) -> bool:
    kept = found.complete and not found.violated
    _show(model, "", found, "all kept" if kept else found.violated or "not searched to the end")
    return kept


def _broken(model: Model, cure: Cure) -> bool:
    _, found = without(model, cure)
    verdict = f"broken: {cure.breaks}" if found.violated else "NO COUNTEREXAMPLE"
    _show(model, cure.flag, found, verdict)
    return bool(found.violated)


def _one(flag: str) -> int:
    for model, cure in _cures():
        if cure.flag == flag:
            search, found = without(model, cure)
            _show(model, flag, found, cure.without)
            if found.violated:
                print("\n".join(tell_steps(search.replayed(), model.file)))
            return 0 if found.violated else 1
    print(f"no such flag; there are {', '.join(cure.flag for _, cure in _cures())}")
    return 1


def _cures() -> Iterator[tuple[Model, Cure]]:
    return ((model, cure) for model in MODELS for cure in model.cures)


def _show(model: Model, flag: str, found: Found, verdict: str) -> None:
    seconds, megabytes = f"{found.seconds:.1f}", f"{found.megabytes:.0f}"
    print(
        _ROW.format(model.name, flag, f"{found.states:,}", seconds, megabytes, verdict), flush=True
    )


if __name__ == "__main__":
    sys.exit(main())
