"""Two clusters on real connections, and a client that knows the first one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from simulation.traffic.client import Client
from tests.traffic.town import Town, town


@pytest.fixture
def blue(tmp_path: Path) -> Iterator[Town]:
    with town(tmp_path, "blue") as made:
        yield made


@pytest.fixture
def green(tmp_path: Path) -> Iterator[Town]:
    with town(tmp_path, "green") as made:
        yield made


@pytest.fixture
def client(blue: Town) -> Iterator[Client]:
    with Client(blue.url, "test") as made:
        yield made
