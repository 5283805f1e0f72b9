"""The agent in each broker: it reports load, holds the lease, agrees on ownership, obeys commands.

Requests to Redis and Kafka are in `sinks`; what a request may do is in `trimtab.ownership`.
"""
