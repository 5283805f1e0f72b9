"""`trimtab api`: serves the control plane over HTTP."""

from __future__ import annotations

import ipaddress
import socket
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
import uvicorn

from admin.commands.tools.options import Config
from admin.ending import end
from admin.exit_codes import FAILED, USAGE
from api.app import MOST_CHANGES, Access, create_app
from api.audit_log import AuditLog
from api.certificates import follow_files
from api.context import Context
from api.rate_limit import RateLimit
from api.server import Server
from api.tokens import InvalidTokens, Tokens
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
        Path | None, typer.Option(help="A TOML file of who may ask; see trimtab tokens create.")
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
    except InvalidConfig as error:
        problems.append(error.told())
    try:
        known = None if tokens is None else Tokens(tokens, lambda: datetime.now(UTC))
    except InvalidTokens as error:
        problems += [*error.problems, "Next: trimtab tokens create NAME (it makes an entry)"]
    if problems:
        raise end("\n".join(problems), USAGE)
    if obstacles := [*_find_obstacles(host, port, audit)]:
        raise end("\n".join(obstacles), FAILED)
    access = Access(known, AuditLog(audit), RateLimit(changes, time.monotonic))
    scheme = "https" if tls_cert else "http"
    files = [file for file in given.values() if file]
    with ControlPlane(settings) as plane:
        typer.echo(
            f"{scheme}://{_in_url(host)}:{port}: the page, and for pulsar-admin --admin-url; /docs",
            err=True,
        )
        app = create_app(Context(plane, cluster), access)
        served = uvicorn.Config(
            app,
            host=host,
            port=port,
            log_config=None,
            ssl_certfile=tls_cert,
            ssl_keyfile=tls_key,
            ssl_ca_certs=None if client_ca is None else str(client_ca),
            ssl_cert_reqs=0 if client_ca is None else 2,
            ssl_context_factory=(lambda _, build: follow_files(build, files)) if files else None,
        )
        Server(served, app.state.watch).serve_until_ended()


def _problems(host: str, tokens: Path | None, tls: dict[str, Path | None]) -> Iterator[str]:
    """What is wrong with the options together."""
    if tokens is None and not _is_loopback(host):
        yield (
            f"--host {host}: others than this machine could do everything; give --tokens FILE "
            "(trimtab tokens create makes its entries)"
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
