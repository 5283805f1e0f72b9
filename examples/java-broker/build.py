"""Compile the broker into build/java-broker, and print the command that starts it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from deploy import jars
from deploy.kafka_server import java
from deploy.maven import MavenError

HERE: Final = Path(__file__).resolve().parent
BUILT: Final = HERE.parents[1] / "build" / "java-broker"


def build(folder: Path) -> Path:
    """Compile into ``folder``; returns the file that `java @…` takes. Raises CalledProcessError."""
    locked = jars.list_locked(lock=HERE / "jars.lock")
    jars.fetch(jars.progress_bar(), locked)
    class_path = os.pathsep.join(str(jar.path) for jar in locked)
    classes = folder / "classes"
    shutil.rmtree(classes, ignore_errors=True)
    checks = ["-Xlint:all", "-Werror", "--release", "17"]
    sources = sorted((HERE / "src" / "broker").glob("*.java"))
    subprocess.run(
        [_javac(), *checks, "-encoding", "UTF-8", "-cp", class_path, "-d", classes, *sources],
        check=True,
    )
    shutil.copy(HERE / "src" / "scripts.properties", classes)
    start = folder / "start"
    start.write_text(f'-cp "{classes}{os.pathsep}{class_path}"\nbroker.Main\n', "utf-8")
    return start


def _javac() -> str:
    return str(Path(java()).with_name("javac"))


def main() -> None:
    try:
        start = build(BUILT)
    except (jars.JarError, MavenError) as error:
        sys.exit(f"java-broker: {error}")
    except FileNotFoundError:
        sys.exit("java-broker: there is no javac. Type: make jdk")
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
    print(f"java @{start}")


if __name__ == "__main__":
    main()
