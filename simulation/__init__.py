"""Simulated brokers: a fleet whose load follows the bundles it owns.

The fleet that the demo and the benchmarks run is here; simulations without servers are in packages.
"""
