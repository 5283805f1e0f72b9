"""Operators' intents: what is wrong with one, and what it changes in a cluster's memory.

Settings, policies, controls and migrations have a file each; the rest is in `flaws` and `apply`.
What an intent names must exist: `existing`.
The outcome of an intent is in `trimtab.cluster.outcomes`; its form is in `trimtab.wire.intent`.
"""
