"""Simulates ownership under every fault at once, without servers: one seed, one run."""
