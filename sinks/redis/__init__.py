"""Redis as the ownership store: records, leases, commands, explanations, and the Lua scripts.

`sinks.redis.server` finds servers and connects to them.
"""
