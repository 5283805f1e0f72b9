"""A Redis server for simulations, in this process's memory, that answers as the Lua scripts do.

The network to it, and two servers with failovers, are in `simulation.ownership`.
"""
