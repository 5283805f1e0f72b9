"""Logging of an agent's process: to stderr, as stdout is for requested output."""

from __future__ import annotations

import logging
import sys

import structlog


def log_to_stderr(level: int = logging.INFO) -> None:
    """Configure logging once, at the start of a process; each command is logged at DEBUG."""
    structlog.configure(
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        wrapper_class=structlog.make_filtering_bound_logger(level),
    )
