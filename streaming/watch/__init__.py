"""Threads that run between batches: leases, the server's clock, intents, journals, pruning.

What a lost lease leads to is decided in `trimtab.cluster`.
"""
