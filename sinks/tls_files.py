"""Checks the PEM files that an operator names for TLS before anything connects."""

from __future__ import annotations

import ssl
from pathlib import Path


class BadTlsFile(ValueError):
    """A file that TLS cannot use; names the setting, the file and the cause."""

    def __init__(self, setting: str, file: Path, why: str) -> None:
        super().__init__(f"{setting}: {file}: {why}")


def check_ca(setting: str, file: Path) -> None:
    """Raise BadTlsFile unless the file holds certificates to trust."""
    try:
        ssl.create_default_context(cafile=str(file))
    except (OSError, ValueError) as error:
        raise BadTlsFile(setting, file, _why(error)) from None


def check_pair(setting: str, certificate: Path, key: Path) -> None:
    """Raise BadTlsFile unless they hold a certificate and its unencrypted private key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        # Without any password OpenSSL would ask for one on the terminal.
        context.load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:
        raise BadTlsFile(setting, certificate, _why(error)) from None


def _why(error: OSError | ValueError) -> str:
    if isinstance(error, ssl.SSLError):
        return f"no use to TLS ({error.reason or 'unreadable'})"
    return getattr(error, "strerror", None) or str(error)
