"""Brokers that behave: a fleet whose load follows the bundles it owns."""
