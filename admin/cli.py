"""`trimtab`: for people at a terminal. Requested output goes to stdout, all else to stderr."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Final

import typer

from streaming.logs import configure

COMMANDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "brokers": "admin.commands.brokers:broker_commands",
        "bundles": "admin.commands.bundles:bundle_commands",
        "clusters": "admin.commands.clusters:cluster_commands",
        "config": "admin.commands.config:config_commands",
        "contexts": "admin.commands.contexts:context_commands",
        "kafka": "admin.commands.tools.kafka:kafka_commands",
        "namespaces": "admin.commands.namespaces:namespace_commands",
        "migration": "admin.commands.migration:migration_commands",
        "plans": "admin.commands.plans:plan_commands",
        "pins": "admin.commands.controls:pin_commands",
        "modes": "admin.commands.controls:mode_commands",
        "budgets": "admin.commands.controls:budget_commands",
        "windows": "admin.commands.controls:window_commands",
        "policies": "admin.commands.policies:policy_commands",
        "rounds": "admin.commands.rounds:round_commands",
        "tokens": "admin.commands.tools.tokens:token_commands",
        "topics": "admin.commands.topics:topic_commands",
        "status": "admin.commands.clusters:status",
        "top": "admin.commands.top:top",
        "why": "admin.commands.why:why",
        "pause": "admin.commands.rounds:pause",
        "resume": "admin.commands.rounds:resume",
        "outcome": "admin.commands.outcome:outcome",
        "advise": "admin.commands.advise:advise",
        "doctor": "admin.commands.tools.doctor:doctor",
        "audit": "admin.commands.tools.audit:audit",
        "replay": "admin.commands.tools.replay:replay",
        "simulate": "admin.commands.tools.simulate:simulate",
        "conformance": "admin.conformance.command:conformance",
        "api": "admin.commands.tools.api:serve_api",
        "demo": "admin.demo.command:demo",
        "parity": "admin.commands.tools.parity:parity",
        "job": "admin.commands.tools.job:job",
    }
)
"""The module and the name of each command, or group of commands, in the order of ``--help``."""


def build_app(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The command line with these commands; imports only their modules."""
    app = typer.Typer(
        name="trimtab",
        help="Keeps a fleet of Pulsar-style brokers balanced with the fewest moves.",
        no_args_is_help=True,
        # Typer's own tracebacks would show local variables, including passwords.
        pretty_exceptions_enable=False,
    )
    # Without a callback, Typer takes a single command for the whole program.
    app.callback()(_no_options)
    for name in names:
        module, _, attribute = COMMANDS[name].partition(":")
        command = getattr(import_module(module), attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def _no_options() -> None:
    pass


def main() -> None:
    """The console script."""
    # librdkafka's message about each attempt is no answer; a failure is shown once, by its command.
    configure("info")
    # All modules take seconds to import: the help, a wrong word and a shell's completion need them.
    named = [word for word in sys.argv[1:2] if word in COMMANDS]
    build_app(named or COMMANDS)()
