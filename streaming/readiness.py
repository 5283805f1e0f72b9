"""What keeps a job from working, found before it claims: it must not end one that works."""

from __future__ import annotations


class NotReady(RuntimeError):
    """Says why, and what to do about it."""
