"""The command that a person may type next, as text to copy."""

from __future__ import annotations

import shlex


def command(*words: str) -> str:
    """This program's command of these words.

    Names are quoted for the shell: senders of load reports choose them.
    """
    return shlex.join(["trimtab", *words])
