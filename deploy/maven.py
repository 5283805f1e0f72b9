"""The two requests to Maven Central: a coordinate's dependencies, and one of its files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import stamina
from jgo.config import GlobalSettings
from jgo.constants import MAVEN_CENTRAL_URL
from jgo.maven import Artifact, Dependency, MavenContext, PythonResolver


class MavenError(RuntimeError):
    """A repository did not answer, or lacks the file: try again, or check the network."""


def resolve(coordinates: Iterable[str], scratch: Path) -> list[str]:
    """The coordinates of everything these need at run time, including themselves."""
    context = _context(scratch)
    # raw: a coordinate given here must not manage the versions of the others.
    roots = [Dependency(_artifact(context, name), raw=True) for name in coordinates]
    needed, transitive = context.resolver.resolve(roots)
    return sorted(f"{d.groupId}:{d.artifactId}:{d.version}" for d in [*needed, *transitive])


@stamina.retry(on=MavenError, attempts=3)
def download(coordinate: str, scratch: Path) -> Path:
    """Fetch one jar below `scratch`; the caller must verify it."""
    artifact = _artifact(_context(scratch), coordinate)
    try:
        return artifact.resolve()
    # jgo lets requests' errors (OSErrors) through, and raises RuntimeError for any other status.
    except (OSError, RuntimeError) as error:
        # It writes in place: a partial file would look complete next time.
        if artifact.cached_path:
            artifact.cached_path.unlink(missing_ok=True)
        raise MavenError(f"{coordinate} cannot be fetched: {error}") from error


def _context(scratch: Path) -> MavenContext:
    # A mirror is named in jgo's own file, ~/.config/jgo.conf, under [repositories].
    mirrors = GlobalSettings.load().repositories
    return MavenContext(
        repo_cache=scratch,
        remote_repos={**mirrors, "central": MAVEN_CENTRAL_URL},
        resolver=PythonResolver(),
        timeout=30,
    )


def _artifact(context: MavenContext, coordinate: str) -> Artifact:
    group, artifact, version = coordinate.split(":")
    return context.project(group, artifact).at_version(version).artifact()
