"""Simulated brokers: a fleet whose load follows the bundles it owns."""
