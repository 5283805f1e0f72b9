"""Leases of brokers: what a lease is, how it is renewed with and without a script, who holds one.

When a broker renews is in `agent`, what follows from a lost one in `streaming.watch` and `trimtab`.
"""
