"""`trimtab api`: serves the control plane over HTTP; `trimtab api-token` makes a caller's token."""

from __future__ import annotations

import hashlib
import ipaddress
import secrets
import socket
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
import uvicorn

from admin.commands.options import Config
from admin.ending import FAILED, USAGE, end
from api.app import MOST_CHANGES, Access, create_app
from api.audit_log import AuditLog
from api.context import Context
from api.rate_limit import RateLimit
from api.tokens import LONGEST_NAME, InvalidTokens, Role, Tokens
from control.plane import ControlPlane
from streaming.config import InvalidConfig, load_config


def serve_api(  # noqa: PLR0913 - the options of a command line
    cluster: Annotated[
        str, typer.Option(help="What Pulsar's paths are about; default: the only one.")
    ] = "",
    host: Annotated[
        str, typer.Option(help="The address to listen on; beyond loopback needs --tokens.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 9781,
    tokens: Annotated[
        Path | None, typer.Option(help="A TOML file of who may ask; see trimtab api-token.")
    ] = None,
    audit: Annotated[
        Path | None, typer.Option(help="A file that gets a line of JSON for each change.")
    ] = None,
    changes: Annotated[
        float, typer.Option(min=1, help="How many changes a minute one caller may ask for.")
    ] = MOST_CHANGES,
    tls_cert: Annotated[Path | None, typer.Option(help="The server's certificates, PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Their key, PEM.")] = None,
    client_ca: Annotated[
        Path | None, typer.Option(help="Only clients with a certificate of this CA, PEM.")
    ] = None,
    config: Config = None,
) -> None:
    """Serve Pulsar's admin paths and trimtab's own, until Ctrl-C; several may run."""
    given = {"--tls-cert": tls_cert, "--tls-key": tls_key, "--client-ca": client_ca}
    problems = list(_problems(host, tokens, given))
    try:
        settings = load_config(config)
        known = None if tokens is None else Tokens(tokens, lambda: datetime.now(UTC))
    except InvalidConfig as error:
        problems += error.problems
    except InvalidTokens as error:
        problems += [*error.problems, "Next: trimtab api-token NAME (it makes an entry)"]
    if problems:
        raise end("\n".join(problems), USAGE)
    if obstacles := [*_find_obstacles(host, port, audit)]:
        raise end("\n".join(obstacles), FAILED)
    access = Access(known, AuditLog(audit), RateLimit(changes, time.monotonic))
    scheme = "https" if tls_cert else "http"
    with ControlPlane(settings) as plane:
        typer.echo(
            f"{scheme}://{_in_url(host)}:{port}: for pulsar-admin --admin-url; /docs", err=True
        )
        uvicorn.run(
            create_app(Context(plane, cluster), access),
            host=host,
            port=port,
            log_config=None,
            ssl_certfile=tls_cert,
            ssl_keyfile=tls_key,
            ssl_ca_certs=None if client_ca is None else str(client_ca),
            ssl_cert_reqs=0 if client_ca is None else 2,
        )


def make_token(
    name: Annotated[str, typer.Argument(help="Whose it is.")],
    role: Annotated[str, typer.Option(help="viewer, operator or admin.")] = "viewer",
    tenant: Annotated[list[str] | None, typer.Option(help="Only this one; repeatable.")] = None,
) -> None:
    """Make a token: it goes to stderr, once; the entry for the file of --tokens to stdout."""
    if not 0 < len(name) <= LONGEST_NAME:
        raise end(f"NAME: must have 1 to {LONGEST_NAME} characters", USAGE)
    if role.upper() not in Role.__members__:
        named = ", ".join(each.name.lower() for each in Role)
        raise end(f"--role {role}: must be one of {named}", USAGE)
    token = secrets.token_urlsafe(32)
    typer.echo(f"the token of {name}, shown this once: {token}", err=True)
    quoted = [_quote(each) for each in tenant or ()]
    print(f"[[token]]\nname = {_quote(name)}\nrole = {_quote(role.lower())}")
    print(f'sha256 = "{hashlib.sha256(token.encode()).hexdigest()}"')
    if quoted:
        print(f"tenants = [{', '.join(quoted)}]")


def _problems(host: str, tokens: Path | None, tls: dict[str, Path | None]) -> Iterator[str]:
    """What is wrong with the options together."""
    if tokens is None and not _is_loopback(host):
        yield (
            f"--host {host}: others than this machine could do everything; give --tokens FILE "
            "(trimtab api-token makes its entries)"
        )
    if (tls["--tls-cert"] is None) != (tls["--tls-key"] is None):
        yield "--tls-cert and --tls-key: give both or neither"
    if tls["--client-ca"] is not None and tls["--tls-cert"] is None:
        yield "--client-ca: needs --tls-cert and --tls-key"
    absent = [f"{name} {path}" for name, path in tls.items() if path and not path.is_file()]
    yield from (f"{each}: there is no such file" for each in absent)
    if not absent:
        yield from _tls_problems(*tls.values())


def _tls_problems(cert: Path | None, key: Path | None, ca: Path | None) -> Iterator[str]:
    """Why a server cannot use its certificates; an encrypted key would ask at the terminal."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    if cert and key:
        try:
            context.load_cert_chain(cert, key, password="")
        except (ssl.SSLError, OSError) as error:
            why = error.reason if isinstance(error, ssl.SSLError) else error.strerror
            yield (
                f"--tls-cert {cert}, --tls-key {key}: not a certificate and its key, in PEM and "
                f"without a password: {why}"
            )
    if ca:
        try:
            context.load_verify_locations(ca)
        except (ssl.SSLError, OSError):
            yield f"--client-ca {ca}: not certificates in PEM"


def _find_obstacles(host: str, port: int, audit: Path | None) -> Iterator[str]:
    """What keeps the server from listening or noting."""
    try:
        for family, kind, number, _, address in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        ):
            with socket.socket(family, kind, number) as probe:
                # As servers do: connections in TIME_WAIT must not count as a listener.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
    except OSError as error:
        why = error.strerror or error
        yield f"{host}:{port}: cannot listen there: {why}; give another --port or --host"
    try:
        if audit is not None:
            audit.open("ab").close()
    except OSError as error:
        yield f"--audit {audit}: cannot be written: {error.strerror}; give another file"


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
