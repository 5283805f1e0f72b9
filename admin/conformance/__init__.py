"""Plays a job and a Redis against a broker in any language, and says which rules it keeps.

The rules are those of docs/wire.md; trimtab's own agent is tested in `tests/agent`.
"""
