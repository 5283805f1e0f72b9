"""The arguments and options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Cluster = Annotated[str, typer.Argument(help="The cluster concerned.")]
Config = Annotated[
    Path | None, typer.Option(help="A TOML file of settings; TRIMTAB_... variables override it.")
]
Json = Annotated[bool, typer.Option("--json", help="For programs.")]
Unchecked = Annotated[
    bool, typer.Option("--unchecked", help="Do not check it before; the job checks it too.")
]
Wait = Annotated[
    float,
    typer.Option(min=0, help="Seconds to wait until it is done; 1 if it is not, 2 if refused."),
]
Id = Annotated[
    str,
    typer.Option("--id", help="A name of your own: the same request with it is carried out once."),
]
