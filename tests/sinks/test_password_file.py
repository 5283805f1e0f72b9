"""The password of Redis stands in a file, and rotates while a client runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis

from deploy.redis_server import RedisServer
from sinks.errors import Misconfigured
from sinks.redis.answers.outcomes import Outcomes
from sinks.redis.server.connections import redis_client


@pytest.fixture
def user(redis_server: RedisServer) -> Iterator[str]:
    with redis.Redis.from_url(redis_server.url) as admin:
        admin.acl_setuser(
            "rotating", enabled=True, passwords=["+old"], keys="*", commands=["+@all"]
        )
        yield "rotating"
        admin.acl_deluser("rotating")


def test_the_next_connection_has_the_new_password(
    redis_server: RedisServer, user: str, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_text("old\n")
    where = urlsplit(redis_server.url)
    url = f"redis://{user}@{where.hostname}:{where.port}/0?password_file={file}"
    with redis_client(url) as client, redis.Redis.from_url(redis_server.url) as admin:
        outcomes = Outcomes(client)
        assert outcomes.read("c", "nothing") is None
        admin.execute_command("ACL", "SETUSER", user, ">new", "<old")
        # A connection that stands goes on; a new one needs the new password.
        assert outcomes.read("c", "nothing") is None
        client.connection_pool.disconnect()
        with pytest.raises(Misconfigured, match="password"):
            outcomes.read("c", "nothing")
        file.write_text("new")
        assert outcomes.read("c", "nothing") is None


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("redis://u:p@h:1/0?password_file=/etc/hosts", "a password or a password_file, not both"),
        ("redis://u@h:1/0?password_file=/no/such/file", "/no/such/file: there is no such file"),
    ],
)
def test_an_address_with_two_passwords_or_none_is_refused(url: str, says: str) -> None:
    with pytest.raises(Misconfigured, match=says):
        redis_client(url)
