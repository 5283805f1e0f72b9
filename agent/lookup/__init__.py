"""Lookup from topic to bundle to owner: a broker's answers, and the clients' cache of them.

What Redis is asked is in `sinks.redis`; the answer's form in `trimtab.wire.lookup`.
"""
