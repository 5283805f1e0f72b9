"""What the other cluster of a migration is asked with: a token, and the authorities of its TLS."""

from __future__ import annotations

import re
import ssl
from pathlib import Path
from typing import Final, Self

from pydantic import BaseModel, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings

from sinks.environment import misconfigured
from sinks.errors import Misconfigured
from sinks.tls_files import check_ca

WHO_ASKS: Final = (401, 403)
"""Statuses of a web service that requires a login, or refuses the one that it got."""

_TOKEN: Final = re.compile(r"[!-~]+")


class GreenAccess(BaseModel, extra="forbid", frozen=True, hide_input_in_errors=True):
    """No token by default. TLS always checks the server's certificate and its name."""

    token: SecretStr = SecretStr("")
    token_file: Path | None = None
    """Instead of ``token``. Read for each request, so that a token is replaced under a process that
    runs on."""
    ca: Path | None = None
    """PEM; the default is the authorities that the system trusts."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        """Reject what no server would explain."""
        if self.token.get_secret_value() and self.token_file:
            raise ValueError("token and token_file are two tokens: give one of them")
        if self.ca:
            check_ca("ca", self.ca)
        try:
            self.headers()
        except Misconfigured as error:
            raise ValueError(str(error)) from None
        return self

    def headers(self) -> dict[str, str]:
        """Of a request. They hold the token: never log them. Raises Misconfigured."""
        token = self._read() if self.token_file else self.token.get_secret_value()
        if not token:
            return {}
        if not _TOKEN.fullmatch(token):
            # Its text shows no character of it.
            raise Misconfigured(f"{self._setting}: a token is one word of visible ASCII characters")
        return {"Authorization": f"Bearer {token}"}

    def context(self) -> ssl.SSLContext:
        """What a TLS connection is made with; raises Misconfigured."""
        try:
            return ssl.create_default_context(cafile=None if self.ca is None else str(self.ca))
        except OSError as error:
            raise Misconfigured(f"green.ca: {self.ca}: {error.strerror or error}") from None

    def say_refused(self) -> str:
        """What to do where green answers one of ``WHO_ASKS``."""
        if self._setting:
            return f"it does not take the token of {self._setting}, or its role may not do this"
        return "it wants a token: set green.token_file (TRIMTAB_GREEN__TOKEN_FILE)"

    @property
    def _setting(self) -> str:
        if self.token_file:
            return "green.token_file"
        return "green.token" if self.token.get_secret_value() else ""

    def _read(self) -> str:
        assert self.token_file is not None
        try:
            text = self.token_file.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "not UTF-8"
            raise Misconfigured(f"green.token_file: {self.token_file}: {why}") from None
        if not text:
            raise Misconfigured(f"green.token_file: {self.token_file}: is empty")
        return text


NO_ACCESS: Final = GreenAccess()

NOT_TRUSTED: Final = "set green.ca (TRIMTAB_GREEN__CA) to the authorities that have signed it"
"""What to do where green's certificate is not trusted."""


class _Environment(
    BaseSettings,
    env_prefix="TRIMTAB_",
    env_nested_delimiter="__",
    hide_input_in_errors=True,
    extra="ignore",
):
    green: GreenAccess = NO_ACCESS


def access_of_environment() -> GreenAccess:
    """Read TRIMTAB_GREEN__TOKEN_FILE and so on, as the API does; raises Misconfigured."""
    try:
        return _Environment().green
    except ValidationError as error:
        raise misconfigured("green", error) from None
