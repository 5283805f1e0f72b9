"""The options that several commands take which ask Kafka and Redis themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Config = Annotated[
    Path | None, typer.Option(help="A TOML file of settings; TRIMTAB_... variables override it.")
]
