"""Logs of an agent's process: stdout is for what was asked for, so they go to stderr."""

from __future__ import annotations

import logging
import sys

import structlog


def log_to_stderr(level: int = logging.INFO) -> None:
    """Once, at the start of a process; the job's commands, one by one, are at DEBUG."""
    structlog.configure(
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        wrapper_class=structlog.make_filtering_bound_logger(level),
    )
