"""Operator ② without its engine: what arrives for a cluster, when a round is due, what it records.

What a round decides is in `trimtab.round`; what is remembered, in `trimtab.state`.
"""
