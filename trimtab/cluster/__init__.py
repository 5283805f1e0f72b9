"""Operator ② without the engine: applies a cluster's rows, holds rounds when due, records them.

Decisions are in `trimtab.round`; what a cluster remembers is in `trimtab.state`.
"""
