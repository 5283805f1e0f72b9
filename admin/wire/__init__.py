"""Writes docs/wire.md and the JSON Schemas from the types that the code itself uses.

The types are in `trimtab.wire`.
"""
