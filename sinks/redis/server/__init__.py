"""The Redis server itself: its address, Sentinels, connections, errors and replicas.

trimtab's data in it is in `sinks.redis`.
"""
