"""Writes the parts of docs that are made from code: the metrics, and two state diagrams.

docs/wire.md and the schemas are made in `admin.wire`.
"""
