"""`trimtab demo`: its processes, their figures, and the display.

`deploy` starts the servers; `simulation` generates the fleet's load.
"""
