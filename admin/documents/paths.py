"""Writes docs/paths.md from the API's OpenAPI document: ``python -m admin.documents.paths``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from admin.documents.tables import row
from api.app import create_app
from api.context import Context
from control.plane import ControlPlane

DOCUMENT: Final = Path("docs/paths.md")

_HEAD: Final = """# All paths of the API

<!-- made by python -m admin.documents.paths -->

[api.md](api.md) tells who may ask what, and how changes are sent and answered. A running API has
the same at `/docs`, and for programs, with the form of every body, at `/openapi.json`. What is in
braces in a path is a name; `?` stands before what a query may have.
"""

_PARTS: Final = (
    ("trimtab's own", "/trimtab/v1"),
    ("Pulsar's", "/admin"),
    ("Pulsar's lookup", "/lookup"),
)


def write_document() -> str:
    """The whole text."""
    # No path is asked, so none needs a control plane.
    app = create_app(Context(cast(ControlPlane, None)))
    paths: Mapping[str, Mapping[str, Any]] = app.openapi()["paths"]
    parts = [_HEAD]
    for title, prefix in _PARTS:
        parts.append(f"## {title}: `{prefix}`\n")
        parts.append("| | path | query, body | what it does |\n|---|---|---|---|")
        parts += [
            _row(method, path.removeprefix(prefix) or "/", operation)
            for path, methods in paths.items()
            if path.startswith(prefix)
            for method, operation in methods.items()
        ]
        parts.append("")
    return "\n".join(parts)


def _row(method: str, path: str, operation: Mapping[str, Any]) -> str:
    said = " ".join(operation.get("description", operation["summary"]).split())
    return row(method.upper(), f"`{path}`", ", ".join(_inputs(operation)), said)


def _inputs(operation: Mapping[str, Any]) -> Iterator[str]:
    for each in operation.get("parameters", ()):
        if each["in"] == "query":
            yield f"`?{each['name']}`"
    for body in operation.get("requestBody", {}).get("content", {}).values():
        schema = body["schema"]
        kinds = [each.get("$ref", "") for each in (schema, *schema.get("anyOf", ()))]
        yield next((f"body `{kind.rpartition('/')[2]}`" for kind in kinds if kind), "body")


if __name__ == "__main__":
    DOCUMENT.write_text(write_document(), "utf-8")
