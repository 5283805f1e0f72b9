"""Operators' intents: what is wrong with one, and what it changes in a cluster's memory.

What comes of an intent is in `trimtab.cluster.outcomes`; its form is in `trimtab.wire.control`.
"""
