"""Carries out what the job commands: unload, transfer, split, merge; gives bundles away at the end.

When it is done is decided by the loop in `agent.agent`.
"""
