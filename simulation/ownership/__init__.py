"""Simulates ownership under every fault at once, without servers: one seed, one run.

Its agents are the real ones (`agent`); `model` checks every state of a smaller protocol.
"""
