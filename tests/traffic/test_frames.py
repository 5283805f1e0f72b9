"""The page about the protocol has every line with its members, and what it shows can be read."""

from __future__ import annotations

import re
import typing
from pathlib import Path

import msgspec
import pytest

from simulation.traffic.frames import (
    KNOWS_REDIRECT,
    Connected,
    FromBroker,
    FromClient,
    Malformed,
    Migrated,
    Part,
    Produce,
    Refused,
    Unreadable,
    encode,
    fit,
    of_broker,
    of_client,
)
from simulation.traffic.standing import AFTER, Standing, Step
from trimtab.migration.migration import Target
from trimtab.model import Epoch
from trimtab.wire.lookup import Avoid

PAGE = (Path(__file__).parents[2] / "docs" / "traffic.md").read_text("utf-8")


def rows(kinds: object) -> list[str]:
    """What the page's tables have to say of these kinds."""
    described = []
    for kind in typing.get_args(kinds):
        members = ", ".join(field.encode_name for field in msgspec.structs.fields(kind))
        described.append(f"| `{kind.__struct_config__.tag}` | {members} |")
    return described


def test_the_page_has_every_line_with_its_members() -> None:
    told = [row for row in rows(FromClient) + rows(FromBroker) if row not in PAGE]
    assert not told, "docs/traffic.md lacks these"
    lines = re.findall(r"^\| `([a-z]+)` \| ", PAGE, re.MULTILINE)
    assert len(lines) == len(rows(FromClient)) + len(rows(FromBroker))


def test_the_conversation_on_the_page_is_one() -> None:
    said = re.findall(r"^([<>]) (\{.*\})$", PAGE, re.MULTILINE)
    read = [(of_client if way == ">" else of_broker)([line.encode()]) for way, line in said]
    assert len(read) == 8
    for (_, line), frames in zip(said, read, strict=True):
        readable = [frame for frame in frames if not isinstance(frame, Unreadable)]
        assert encode(readable).decode() == f"{line}\n"


def test_the_page_shows_what_a_client_avoids() -> None:
    [line] = re.findall(r"^(\{.*avoid.*\})$", PAGE, re.MULTILINE)
    avoid = Avoid("b1:8080", Epoch(3, 17))
    assert of_client([line.encode()]) == [Produce("persistent://t/ns/orders", "till", avoid)]


def test_the_page_has_the_table_of_standings() -> None:
    for standing in Standing:
        cells = [AFTER[step].get(standing) for step in Step]
        row = " | ".join([standing.value, *(cell.value if cell else "" for cell in cells)])
        assert f"| {row.replace('|  |', '| |').replace('|  |', '| |')} |" in PAGE


def test_versions_that_know_no_redirect_are_refused_by_name() -> None:
    moved = Migrated("t", "p", Part.PRODUCER, Target(brokerServiceUrl="pulsar://green"))
    assert fit(moved, KNOWS_REDIRECT) is moved
    refused = fit(moved, KNOWS_REDIRECT - 1)
    assert isinstance(refused, Refused)
    assert refused.needs == KNOWS_REDIRECT
    assert fit(Connected(1, "c"), 1) == Connected(1, "c")


@pytest.mark.parametrize("line", [b"", b"{}", b"[1]", b'{"is":"no"}', b"\xff", b"[" * 9000])
def test_what_is_no_frame_is_malformed(line: bytes) -> None:
    for decode in (of_client, of_broker):
        with pytest.raises(Malformed):
            decode([line])
