"""Operators' intents: what is wrong with one, and what it changes in a cluster's memory.

Settings, policies, controls and migrations have a file each; the rest is in `flaws` and `apply`.
That what an intent names exists is checked in `existing`.
The outcome of an intent is in `trimtab.cluster.outcomes`; its form is in `trimtab.wire.intent`.
"""
