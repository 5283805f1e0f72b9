"""The Redis server itself: its address, Sentinels, connections, what its errors mean, its replicas.

What trimtab stores there is in `sinks.redis`.
"""
