"""Redis addresses: one server, or a master that Sentinels watch; checks their options.

redis://user:password@host:6379/0                     rediss:// for TLS
redis+sentinel://user:password@s1:26379,s2:26379,s3:26379/master-name/0
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import SplitResult, parse_qs, unquote, urlencode, urlsplit, urlunsplit

from redis.backoff import NoBackoff
from redis.retry import Retry

from sinks.errors import Misconfigured
from sinks.redis.server.password_file import PasswordFile
from sinks.tls_files import check_ca, check_pair

TIMEOUT_SECONDS: Final = 1.0
"""Longest wait for one answer: with more, a hung server would cost a broker its lease."""

SENTINEL_PORT: Final = 26379

FORMS: Final = (
    "redis://host:port/db or redis+sentinel://host:port,host:port,host:port/master-name/db"
)

_FILES: Final = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_OF_SENTINELS: Final = ("sentinel_username", "sentinel_password")

_PASSWORD_FILE: Final = "password_file"

_ALLOWED: Final[Mapping[str, tuple[str, ...]]] = {
    "redis": (_PASSWORD_FILE,),
    "rediss": (_PASSWORD_FILE, *_FILES),
    "redis+sentinel": (_PASSWORD_FILE, *_OF_SENTINELS),
    "rediss+sentinel": (_PASSWORD_FILE, *_OF_SENTINELS, *_FILES),
    "unix": ("db", "password"),
}


class Host(NamedTuple):
    """The host and port of a server or a Sentinel."""

    name: str
    port: int

    def __str__(self) -> str:
        return f"[{self.name}]:{self.port}" if ":" in self.name else f"{self.name}:{self.port}"


class SentinelAddress(NamedTuple):
    """A parsed address of Sentinels. It holds passwords: never log it."""

    hosts: tuple[Host, ...]
    master: str
    tls: bool
    # Any: redis-py's keyword arguments are of many types.
    to_master: dict[str, Any]
    """redis-py's arguments for a connection to the master."""
    to_sentinel: dict[str, Any]


def connection_options() -> dict[str, Any]:
    """The options of all our connections.

    redis-py 8 retries a timed-out command up to ten times: an INCR was seen applied twice.
    """
    return {
        "socket_timeout": TIMEOUT_SECONDS,
        "socket_connect_timeout": TIMEOUT_SECONDS,
        "retry": Retry(NoBackoff(), 0),
        "decode_responses": False,
        # RESP3 returns maps where RESP2 returns lists: use one shape for every server.
        "protocol": 2,
        # Naming our driver to the server would need a right that nothing else needs.
        "driver_info": None,
    }


def check_options(url: str) -> None:
    """Raise BadTlsFile, and Misconfigured for any other option: it could disable what we rely on,
    the timeouts or the certificate checks."""
    parts = urlsplit(url)
    options = _options(parts)
    allowed = _ALLOWED.get(parts.scheme, ())
    if unknown := sorted(set(options).difference(allowed)):
        raise Misconfigured(
            f"the Redis address may not say {', '.join(unknown)}; "
            f"a {parts.scheme}:// address may say {', '.join(allowed) or 'nothing after its db'}"
        )
    if (file := options.get(_PASSWORD_FILE)) and parts.password:
        raise Misconfigured("the Redis address may say a password or a password_file, not both")
    if file and not Path(file).is_file():
        raise Misconfigured(f"password_file {file}: there is no such file")
    if ca := options.get("ssl_ca_certs"):
        check_ca("ssl_ca_certs", Path(ca))
    if certificate := options.get("ssl_certfile"):
        check_pair("ssl_certfile", Path(certificate), Path(options.get("ssl_keyfile", certificate)))


def split_password_file(url: str) -> tuple[str, dict[str, Any]]:
    """The address without its user and ``password_file``, and redis-py's arguments for them; the
    address as it is, if it names no such file."""
    parts = urlsplit(url)
    options = _options(parts)
    file = options.pop(_PASSWORD_FILE, "")
    if not file:
        return url, {}
    user, _, hosts = parts.netloc.rpartition("@")
    provider = PasswordFile(unquote(user.rstrip(":")), Path(file))
    rest = parts._replace(netloc=hosts, query=urlencode(options))
    return urlunsplit(rest), {"credential_provider": provider}


def names_sentinels(url: str) -> bool:
    """Whether the address names Sentinels."""
    return urlsplit(url).scheme in ("redis+sentinel", "rediss+sentinel")


def sentinel_address(url: str) -> SentinelAddress:
    """Parse an address of Sentinels; raises ValueError if a part is missing or wrong."""
    url, provider = split_password_file(url)
    parts = urlsplit(url)
    options = _options(parts)
    login, _, hosts = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    master, _, db = parts.path.removeprefix("/").partition("/")
    if not master:
        raise ValueError("no name of a master")
    tls = parts.scheme == "rediss+sentinel"
    # The same files for both: one authority signs servers and Sentinels.
    files: dict[str, str] = {name: options[name] for name in _FILES if name in options}
    return SentinelAddress(
        hosts=tuple(_host(host) for host in hosts.split(",")),
        master=unquote(master),
        tls=tls,
        to_master={
            **_login(unquote(user), unquote(password)),
            "db": int(db or 0),
            **files,
            **provider,
        },
        to_sentinel={**_login(*(options.get(name, "") for name in _OF_SENTINELS)), **files},
    )


def _options(parts: SplitResult) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(parts.query).items()}


def _host(text: str) -> Host:
    parts = urlsplit(f"//{text}")
    if not parts.hostname:
        raise ValueError("no host of a Sentinel")
    return Host(unquote(parts.hostname), parts.port or SENTINEL_PORT)


def _login(user: str, password: str) -> dict[str, str]:
    given = {"username": user, "password": password}
    return {name: value for name, value in given.items() if value}
