"""The true state of a simulated fleet: brokers, bundles and their load, and how they change.

What the job learns of it is in `simulation.scenarios.reports`.
"""
