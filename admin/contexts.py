"""Contexts: short names for clusters, in a file like kubectl's.

Each names an API with a token's file, or a settings file of Kafka and Redis, and maybe a cluster::

    current = "prod"

    [context.prod]
    api = "https://trimtab.example:9781"
    token_file = "/home/alice/.trimtab-token"   # read again for each request
    ca = "/etc/ssl/example.pem"                 # default: the system's
    cert = "/home/alice/alice.pem"              # and key = …: where the API asks for them
    cluster = "east"

    [context.lab]
    config = "/home/alice/lab/trimtab.toml"
"""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Final

from pydantic import BaseModel, Field, ValidationError, model_validator

FILE_VARIABLE: Final = "TRIMTAB_CONTEXTS"
"""Names the file, instead of ~/.config/trimtab/contexts.toml."""


class InvalidContexts(ValueError):
    """The file of contexts cannot be used, or has no such context."""


class Target(BaseModel, extra="forbid"):
    """One context: where its commands go."""

    api: str = Field(default="", pattern="^(https?://.+)?$")
    token_file: Path | None = None
    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    config: Path | None = None
    cluster: str = ""

    @model_validator(mode="after")
    def _has_one_way(self) -> Target:
        if bool(self.api) == bool(self.config):
            raise ValueError("give either api or config")
        if self.config and (self.token_file or self.ca or self.cert):
            raise ValueError("token_file, ca and cert are for an api")
        if (self.cert is None) != (self.key is None):
            raise ValueError("give both cert and key, or neither")
        return self


class Contexts(BaseModel, extra="forbid"):
    """All contexts, and the name of the one that is used where none is given."""

    current: str = ""
    context: dict[str, Target] = {}

    def choose(self, name: str) -> Target | None:
        """The context of that name, or the current one; None without either."""
        wanted = name or self.current
        if wanted and wanted not in self.context:
            known = ", ".join(sorted(self.context)) or "none"
            raise InvalidContexts(f"there is no context {wanted}; there is {known}")
        return self.context.get(wanted)


def locate_file() -> Path:
    """Where the contexts are kept."""
    if named := os.environ.get(FILE_VARIABLE):
        return Path(named)
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "trimtab" / "contexts.toml"


def read_contexts(path: Path) -> Contexts:
    """The contexts of a file; none if it does not exist. Raises InvalidContexts."""
    try:
        return Contexts(**tomllib.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        return Contexts()
    except OSError as error:
        raise InvalidContexts(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidContexts(f"{path}: not TOML: {error}") from None
    except ValidationError as error:
        problems = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise InvalidContexts("\n".join(f"{path}: {each}" for each in problems)) from None


def write_contexts(path: Path, contexts: Contexts) -> None:
    """Replace the file."""
    lines = [f"current = {json.dumps(contexts.current)}"]
    for name, target in sorted(contexts.context.items()):
        lines += ["", f"[context.{json.dumps(name)}]"]
        members = target.model_dump(mode="json", exclude_defaults=True)
        # A string in JSON is one in TOML.
        lines += [f"{member} = {json.dumps(value)}" for member, value in members.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text("\n".join(lines) + "\n", "utf-8")
    new.replace(path)
