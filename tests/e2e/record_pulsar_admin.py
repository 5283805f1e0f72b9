"""Record again what real Pulsar brokers answer to the script of pulsar-admin commands.

    HOSTS=distinct python -m tests.e2e.record_pulsar_admin FOLDER [HEADING]

The folder is that of test_real_pulsar.py; its `up.sh` must know the load manager `extensible`, and
with HOSTS=distinct give each broker a host of its own, which isolation policies ask for.
With the heading of a part that needs nothing of the others, the others' answers stay.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.e2e import pulsar_cluster
from tests.support.admin_script import (
    RECORDED,
    SCRIPT,
    Answer,
    Command,
    normalise,
    parse,
    places_of,
    read_answers,
    section,
    write_answers,
)
from tests.support.pulsar_admin import build, pulsar_admin

BROKERS: Final = 3


def main() -> None:
    script = SCRIPT.read_text("utf-8")
    commands, scripts = list(parse(script)), Path(sys.argv[1]).resolve()
    recorded = read_answers(RECORDED) if sys.argv[2:] else {}
    asked = list(parse(section(script, sys.argv[2]))) if sys.argv[2:] else commands
    with tempfile.TemporaryDirectory() as folder:
        answers = _record(asked, scripts, Path(folder), 1 if sys.argv[2:] else BROKERS)
    write_answers(RECORDED, commands, {**recorded, **answers})
    print(f"{len(answers)} answers in {RECORDED}")


def _record(commands: list[Command], scripts: Path, folder: Path, number: int) -> dict[str, Answer]:
    class_path = build(folder)
    with pulsar_cluster.serving(scripts, number, folder, "extensible") as urls:
        (cluster,) = pulsar_cluster.ask(urls[0][0], "/admin/v2/clusters")
        # A broker's id is the authority of its web service URL.
        brokers = [(web.split("//")[1], web, service) for web, service in urls]
        places = places_of(cluster, brokers)
        with pulsar_admin(class_path, urls[0][0]) as admin:
            return {
                command.name: normalise(admin.run(command.arguments(places)), places)
                for command in commands
            }


if __name__ == "__main__":
    main()
