"""`trimtab demo`: the whole system on this machine, balancing a skewed fleet."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from admin.demo.display import summary
from admin.demo.processes import DemoFailed
from admin.demo.run import Demo, DemoOptions
from admin.ending import end
from admin.exit_codes import FAILED, OK, USAGE
from admin.main import INTERRUPTED
from deploy.jars import JarError
from deploy.process import ServerError
from simulation.profile import InvalidProfile
from sinks.errors import SinkError


def demo(  # noqa: PLR0913 - the options of a command line
    seconds: Annotated[
        float, typer.Option(min=1, help="How long it runs, from its first round on.")
    ] = 180,
    start_seconds: Annotated[
        float, typer.Option(min=1, help="How long it may take until that round.")
    ] = 300,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave all running afterwards, until Ctrl-C.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of another fleet of the same kind.")
    ] = None,
    brokers: Annotated[int | None, typer.Option(help="How many, instead of 12.")] = None,
    bundles: Annotated[int | None, typer.Option(help="How many, instead of 480.")] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Lines instead of a picture.")] = False,
) -> None:
    """Watch the job balance a simulated fleet, on its own servers; exit code 1 if it does not."""
    console = Console(stderr=True)
    options = DemoOptions(seconds, start_seconds, keep, seed, brokers, bundles, plain)
    run = Demo(options, console)
    try:
        run.run()
    except InvalidProfile as error:
        raise end(str(error), USAGE) from None
    except DemoFailed as error:
        raise end(str(error), FAILED) from None
    except (ServerError, JarError, SinkError) as error:
        raise end(f"{error}\nNext: trimtab doctor", FAILED) from None
    except KeyboardInterrupt:
        raise end("interrupted before the fleet ran", INTERRUPTED) from None
    print(summary(run.story, run.moves))
    raise typer.Exit(OK if run.story.balanced else FAILED)
