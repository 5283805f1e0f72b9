"""The Redis server itself: its address, Sentinels, connections, errors, replicas, how scripts run.

trimtab's data in it is in `sinks.redis`.
"""
