"""Redis as the ownership store: records, leases, commands, explanations, and the Lua scripts.

How a server is found and connected to is in `sinks.redis.server`.
"""
