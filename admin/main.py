"""The entry of `trimtab`: Ctrl-C leaves no stack trace, also while the commands are imported."""

from __future__ import annotations

from typing import Final

INTERRUPTED: Final = 130


def main() -> None:
    """The console script."""
    try:
        # Imported here: it takes a second, in which somebody may think again.
        from admin import cli

        cli.main()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
