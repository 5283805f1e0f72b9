"""Parses Java's properties format, as java.util.Properties does.

a line ends with \\n, \\r or \\r\\n; blank lines, and lines that begin with # or !, are ignored
a line that ends with an odd number of backslashes continues in the next, without that one's indent
the key ends at the first = or : or white space without a backslash before; the rest is the value
\\t \\n \\r \\f and \\uXXXX mean a character, a backslash before any other one means that one
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple


class MalformedProperties(ValueError):
    """Java could not read the file either; ``problems`` names each bad line."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class Entry(NamedTuple):
    """The value of a key, and the line at which it begins."""

    value: str
    line: int


_WHITE: Final = " \t\f"
# Not splitlines: it accepts more line ends than Java.
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_TRAILING_BACKSLASHES: Final = re.compile(r"\\*\Z")
_PARTS: Final = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|[^u])", re.DOTALL)
_MALFORMED: Final = re.compile(r"\\(?:\\|u(?![0-9a-fA-F]{4}))")
_NAMED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse(text: str) -> dict[str, Entry]:
    """Parse a file into every key with its last value; raises MalformedProperties."""
    entries: dict[str, Entry] = {}
    problems: list[str] = []
    for number, line in _logical_lines(text):
        if r"\u" in _MALFORMED.findall(line):
            problems.append(f"line {number}: \\u must be followed by four hexadecimal digits")
        else:
            key, value = map(_unescaped, _PARTS.findall(line)[0])
            entries[key] = Entry(value, number)
    if problems:
        raise MalformedProperties(problems)
    return entries


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines with content, each with the number of its first part."""
    begun, number = "", 0
    for here, natural in enumerate(_LINE_END.split(text), start=1):
        part = natural.lstrip(_WHITE)
        if not begun:
            number = here
            if not part or part[0] in "#!":
                continue
        begun += part
        backslashes = _TRAILING_BACKSLASHES.search(part)
        if backslashes and len(backslashes[0]) % 2:
            begun = begun[:-1]
        else:
            yield number, begun
            begun = ""
    if begun:
        yield number, begun


def _unescaped(text: str) -> str:
    characters = _ESCAPE.sub(_character, text)
    # Java's characters are UTF-16; two of them may be one of ours.
    return characters.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _character(escape: re.Match[str]) -> str:
    code = escape[1]
    return chr(int(code[1:], 16)) if len(code) > 1 else _NAMED.get(code, code)
