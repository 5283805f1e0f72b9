"""Record anew what real Pulsar brokers answer to the script of pulsar-admin commands.

    HOSTS=distinct python -m tests.e2e.record_pulsar_admin FOLDER

The folder is that of test_real_pulsar.py; its `up.sh` must know the load manager `extensible`, and
with HOSTS=distinct give each broker a host of its own, which isolation policies ask for.
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
    write_answers,
)
from tests.support.pulsar_admin import build, pulsar_admin

BROKERS: Final = 3


def main() -> None:
    commands = list(parse(SCRIPT.read_text("utf-8")))
    with tempfile.TemporaryDirectory() as folder:
        answers = _record(commands, Path(sys.argv[1]).resolve(), Path(folder))
    write_answers(RECORDED, commands, answers)
    print(f"{len(answers)} answers in {RECORDED}")


def _record(commands: list[Command], scripts: Path, folder: Path) -> dict[str, Answer]:
    class_path = build(folder)
    with pulsar_cluster.serving(scripts, BROKERS, folder, "extensible") as urls:
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
