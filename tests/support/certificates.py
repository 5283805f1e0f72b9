"""Certificates for 127.0.0.1, made by the openssl command for as long as a test lasts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

_NEW = (
    *("openssl", "req", "-x509", "-nodes", "-days", "2"),
    *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
)


class Authority:
    """Signs what it issues; ``ca`` is the file to trust it by."""

    def __init__(self, folder: Path, name: str) -> None:
        if shutil.which("openssl") is None:
            pytest.skip("there is no openssl command to make certificates with")
        self._folder = folder
        self._name = name
        self.ca = folder / f"{name}.pem"
        self._key = folder / f"{name}.key"
        _make("-subj", f"/CN={name}", "-keyout", self._key, "-out", self.ca)

    def issue(self, name: str) -> Path:
        """A file with a private key and its certificate."""
        key, certificate = self._folder / f"{name}.key", self._folder / f"{name}.crt"
        _make(
            *("-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-addext", "basicConstraints=critical,CA:FALSE"),
            *("-CA", self.ca, "-CAkey", self._key, "-keyout", key, "-out", certificate),
        )
        both = self._folder / f"{name}-of-{self._name}.pem"
        both.write_text(key.read_text() + certificate.read_text())
        return both


def _make(*more: str | Path) -> None:
    subprocess.run([*_NEW, *more], check=True, capture_output=True)
