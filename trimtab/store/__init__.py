"""The ownership store without its server: requests of a round, rebuild, lookups, the hash ring.

The state machine is in `trimtab.ownership`; Redis is in `sinks.redis`.
"""
