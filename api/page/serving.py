"""Serves the files of the page, under a policy that lets it load and ask nothing but this API."""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files
from typing import Final, NamedTuple

from fastapi import APIRouter, Request, Response

from api.refusal import RefusedRequest

page = APIRouter(include_in_schema=False)

_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # Assigning text to innerHTML and its like is an error in the browser: names are only text.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    # Asked for each time, answered by 304: a new version is there at the next look.
    "Cache-Control": "no-cache",
}


class _File(NamedTuple):
    content: bytes
    media_type: str
    tag: str


def _read() -> dict[str, _File]:
    found = {}
    for each in files("api.page").joinpath("files").iterdir():
        kind = _TYPES.get(each.name.rpartition(".")[2])
        if kind is None:
            continue
        content = each.read_bytes()
        found[each.name] = _File(content, kind, f'"{sha256(content).hexdigest()[:16]}"')
    return found


_FILES: Final = _read()


@page.get("/")
def get_page(request: Request) -> Response:
    """The page."""
    return _answer(request, "index.html")


@page.get("/page/{name}")
def get_file(name: str, request: Request) -> Response:
    """One of its files."""
    if name not in _FILES:
        raise RefusedRequest(404, f"{name}: no such file of the page")
    return _answer(request, name)


def _answer(request: Request, name: str) -> Response:
    file = _FILES[name]
    headers = {**_HEADERS, "ETag": file.tag}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)
