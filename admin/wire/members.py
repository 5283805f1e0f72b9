"""Members of types, with the texts that stand below them in the source."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, NamedTuple

import msgspec

from trimtab.model import Epoch


class Member(NamedTuple):
    """A member of an object on the wire."""

    name: str
    type: str
    default: str
    """The default as JSON; empty if the member is required."""
    text: str


def members(kind: Any) -> Iterator[Member]:
    """The members of a Struct or a dataclass, in order."""
    texts = _texts(kind)
    schemas = _object(kind)
    required = set(schemas.get("required", ()))
    for name, encoded in _names(kind):
        said = schemas["properties"][encoded]
        default = "" if encoded in required else _default(said)
        yield Member(encoded, _type(said), default, texts.get(name, ""))


def _names(kind: Any) -> Iterator[tuple[str, str]]:
    """Each member in Python, and on the wire."""
    if is_dataclass(kind):
        return ((field.name, field.name) for field in fields(kind))
    return ((field.name, field.encode_name) for field in msgspec.structs.fields(kind))


def words(kind: type[Enum]) -> Iterator[tuple[str, str]]:
    """The values of an enumeration, with their texts."""
    texts = _texts(kind)
    for member in kind:
        yield str(member.value), texts.get(member.name, "")


def summary(kind: Any) -> str:
    """A type's docstring as one paragraph."""
    return " ".join(inspect.cleandoc(kind.__doc__ or "").split())


def _texts(kind: Any) -> Mapping[str, str]:
    [tree] = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)
    found: dict[str, str] = {}
    name = ""
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if name:
                found[name] = " ".join(str(node.value.value).split())
            name = ""
        else:
            name = ""
    return found


def _object(kind: Any) -> Mapping[str, Any]:
    whole = msgspec.json.schema(kind)
    found: Mapping[str, Any] = whole["$defs"][kind.__name__] if "$defs" in whole else whole
    return found


def _default(said: Mapping[str, Any]) -> str:
    return msgspec.json.encode(said["default"]).decode() if "default" in said else "absent"


def _type(said: Mapping[str, Any]) -> str:
    if "$ref" in said:
        name = said["$ref"].rpartition("/")[2]
        return "[generation, counter]" if name == Epoch.__name__ else name
    if "anyOf" in said:
        return " or ".join(_type(each) for each in said["anyOf"])
    match said.get("type"):
        case "array":
            return f"[{_elements(said)}]"
        case "object":
            values = said.get("additionalProperties")
            return f"{{name: {_type(values)}}}" if isinstance(values, dict) else "object"
        case None:
            return "any"
        case kind:
            return str(kind)


def _elements(said: Mapping[str, Any]) -> str:
    if "prefixItems" in said:
        return ", ".join(_type(each) for each in said["prefixItems"])
    items = said.get("items")
    return f"{_type(items)}, …" if isinstance(items, dict) else "…"
