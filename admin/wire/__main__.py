"""``python -m admin.wire``: write the generated parts of docs/wire.md, the schemas, and which
scripts the example in Java calls.

--script NAME   print a script's text as brokers call it instead: transition or lease
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from admin.wire.document import DOCUMENT, JAVA_SCRIPTS, java_scripts, write_parts
from admin.wire.schemas import write_schemas
from sinks.redis.scripts import BROKERS_SCRIPTS


def main(
    script: Annotated[str | None, typer.Option(help="Print this one's text.")] = None,
) -> None:
    """Write what is made from the code."""
    if script is None:
        write_schemas()
        DOCUMENT.write_text(write_parts(DOCUMENT.read_text("utf-8")), "utf-8")
        JAVA_SCRIPTS.write_text(java_scripts(), "utf-8")
        return
    texts = {each.__name__.removesuffix("_script"): each().text for each in BROKERS_SCRIPTS}
    if script not in texts:
        raise typer.BadParameter(f"{script}: brokers call {', '.join(texts)}")
    # The SHA-1 is that of this text, without a line end after it.
    sys.stdout.write(texts[script])


if __name__ == "__main__":
    typer.run(main)
