"""Every acceptance case of the specification has a test here, which names it in its docstring."""

from __future__ import annotations

import ast
import re
from pathlib import Path

CASES = [
    *(f"A{number}" for number in range(1, 16)),
    *(f"B{number}" for number in range(1, 9)),
    *(f"C{number}" for number in range(1, 14)),
    *(f"D{number}" for number in range(1, 16)),
    *(f"E{number}" for number in range(1, 16)),
]
"""A: numbers, hashes, ranges. B: OverloadShedder, ThresholdShedder. C: UniformLoadShedder,
AvgShedder. D: TransferShedder. E: placement, affinity, state."""

_CLAIM = re.compile(r"Acceptance cases? ((?:[A-E]\d+(?:, | and )?)+)")


def _claimed(module: Path) -> set[str]:
    """The cases that tests of a module name: "Acceptance case A1", "Acceptance cases A1 and A2"."""
    tests = [
        node
        for node in ast.walk(ast.parse(module.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    claims = [_CLAIM.search(" ".join((ast.get_docstring(test) or "").split())) for test in tests]
    return {case for claim in claims if claim for case in re.findall(r"[A-E]\d+", claim[1])}


def test_every_case_has_a_test() -> None:
    modules = Path(__file__).parent.glob("test_*.py")
    assert set.union(*map(_claimed, modules)) == set(CASES)
