"""`trimtab demo`: its processes, what they say, and how that is shown.

The servers are started by `deploy`; the fleet's load is `simulation`'s.
"""
