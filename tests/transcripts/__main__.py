"""Say which stories differ from their files; ``--rewrite`` writes the files again."""

from __future__ import annotations

import sys

from tests.transcripts.player import FOLDER, retell


def main(rewrite: bool) -> int:
    """Names the files that differ; the exit code says whether any still does."""
    differing = 0
    for path in sorted(FOLDER.glob("*.txt")):
        text = retell(path)
        if text != path.read_text():
            print(path.name)
            if rewrite:
                path.write_text(text)
            else:
                differing += 1
    return min(differing, 1)


if __name__ == "__main__":
    sys.exit(main("--rewrite" in sys.argv[1:]))
