"""Threads that run between batches: leases, the server's clock, intents, journals, pruning.

`trimtab.cluster` decides what follows from a lost lease.
"""
