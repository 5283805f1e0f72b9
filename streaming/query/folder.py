"""A folder on any file system that Spark supports."""

from __future__ import annotations

import re
import uuid
from contextlib import suppress
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

_PROBE_BYTES: Final = 4096
"""Not empty: a full disk still accepts empty files."""

_THROWN: Final = (Py4JJavaError, IllegalArgumentException)
"""PySpark has its own class for Java's IllegalArgumentException: an unknown host, a path that is
not a URI."""

_WRAPPED: Final = re.compile(r"^([\w.$]+(Exception|Error): )+")
"""Hadoop puts one exception's name before the next one's message."""


class FolderError(RuntimeError):
    """The file system's error message, in one line."""


class Folder:
    """One folder; its methods raise FolderError."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.path = path
        # Any: Java objects.
        self._jvm: Any = spark.sparkContext._jvm
        self._conf: Any = spark.sparkContext._jsc.hadoopConfiguration()

    def read(self, name: str) -> str:
        """Return a file's text."""
        try:
            stream = self._files().open(self._at(name))
            try:
                return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()
        except _THROWN as error:
            raise FolderError(_said(error)) from error

    def names(self, name: str = "") -> list[str]:
        """List a folder inside it without hidden files; empty if there is no such folder."""
        try:
            files, at = self._files(), self._at(name)
            if not files.exists(at):
                return []
            found = [str(each.getPath().getName()) for each in files.listStatus(at)]
        except _THROWN as error:
            raise FolderError(_said(error)) from error
        return [each for each in found if not each.startswith(".")]

    def write(self, name: str, text: str) -> None:
        """Write a new file, and the folders above it, as Spark does in every batch: under a
        temporary name, then renamed."""
        self._write(name, text.encode())

    def try_writing(self) -> None:
        """Create the folder if it is missing, and a file in it for a moment."""
        probe = f".trimtab-{uuid.uuid4().hex}"
        try:
            self._write(probe, bytes(_PROBE_BYTES))
        finally:
            self._delete(probe)

    def _write(self, name: str, content: bytes) -> None:
        draft = f".trimtab-{uuid.uuid4().hex}"
        try:
            files, final = self._files(), self._at(name)
            if not files.mkdirs(final.getParent()):
                raise FolderError("it cannot be made")
            stream = files.create(self._at(draft), True)
            try:
                stream.write(content)
            finally:
                stream.close()
            if not files.rename(self._at(draft), final):
                raise FolderError("files in it cannot be renamed")
        except _THROWN as error:
            raise FolderError(_said(error)) from error
        finally:
            self._delete(draft)

    def _delete(self, name: str) -> None:
        with suppress(*_THROWN):
            self._files().delete(self._at(name), False)

    def _files(self) -> Any:
        return self._at("").getFileSystem(self._conf)

    def _at(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.path}/{name}" if name else self.path)


def _said(error: Py4JJavaError | IllegalArgumentException) -> str:
    if isinstance(error, IllegalArgumentException):
        said = str(error)
    else:
        thrown = error.java_exception
        said = str(thrown.getMessage() or thrown.getClass().getName())
    return _WRAPPED.sub("", said.splitlines()[0])
