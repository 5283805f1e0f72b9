"""A story's text: a heading, and blocks of input and output between blank lines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

DASHES = "----"


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that are played together; a line that begins with # is for the reader."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """What is to be done."""
        return tuple(line for line in self.inputs if not line.startswith("#"))


@dataclass(frozen=True, slots=True)
class Story:
    """``heading``: the title, and what to look for."""

    heading: tuple[str, ...]
    blocks: tuple[Block, ...]


def with_outputs(story: Story, outputs: Iterable[Iterable[str]]) -> Story:
    """The story with other outputs, those of one block after another."""
    told = zip(story.blocks, outputs, strict=True)
    return replace(story, blocks=tuple(replace(b, outputs=tuple(lines)) for b, lines in told))


def parse(text: str) -> Story:
    """Raises ValueError for a block without dashes."""
    heading, *blocks = text.strip("\n").split("\n\n")
    return Story(tuple(heading.split("\n")), tuple(map(_parse_block, blocks)))


def render(story: Story) -> str:
    """The text that `parse` reads."""
    blocks = ("\n".join((*each.inputs, DASHES, *each.outputs)) for each in story.blocks)
    return "\n\n".join(("\n".join(story.heading), *blocks)) + "\n"


def _parse_block(text: str) -> Block:
    lines = text.split("\n")
    if DASHES not in lines:
        raise ValueError(f"no {DASHES} after {lines[0]!r}")
    end = lines.index(DASHES)
    return Block(tuple(lines[:end]), tuple(lines[end + 1 :]))
