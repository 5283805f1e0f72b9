"""The streaming query: session, both operators, their state, the batch writer, and the checkpoint.

The operators' arithmetic is in `trimtab.intake` and `trimtab.cluster`.
"""
