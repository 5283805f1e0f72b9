"""Obeys the job's commands: unload, transfer, split, merge; gives bundles away at the end.

The loop in `agent.agent` decides when.
"""
