"""A password of Redis that stands in a file and is read for each new connection."""

from __future__ import annotations

from pathlib import Path

import redis


class PasswordFile(redis.CredentialProvider):
    """Rotates without a restart: Redis asks for the password when a connection begins, and only
    then. With two passwords for the user (``ACL SETUSER user >new``, later ``<old``) nothing waits.
    """

    def __init__(self, user: str, path: Path) -> None:
        self._user, self._path = user, path

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        """The user, if there is one, and the password as of now."""
        try:
            password = self._path.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise redis.ConnectionError(f"password_file {self._path}: {error}") from None
        return (self._user, password) if self._user else (password,)
