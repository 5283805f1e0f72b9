"""The error for a job that cannot work: raised before it claims, so that it ends no working job."""

from __future__ import annotations


class NotReady(RuntimeError):
    """The job cannot start; says why, and what to do about it."""
