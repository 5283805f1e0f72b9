"""`trimtab parity`: answers cases of Pulsar's decisions."""

from __future__ import annotations

import json
import sys

from admin.ending import end
from admin.exit_codes import FAILED
from simulation.parity import decision


def parity() -> None:
    """Answer cases of Pulsar's decisions from stdin, one JSON line each.

    Exit code 1 if a case has no answer.
    """
    failed = 0
    for line in sys.stdin:
        if line.strip():
            decided = decision(line)
            failed += "error" in decided
            # A caller on a pipe waits for each answer.
            print(json.dumps(decided), flush=True)
    if failed:
        raise end(f"{failed} cases have no answer", FAILED)
