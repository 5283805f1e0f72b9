"""Migrations as people see them: what green says before one begins, and how far one is.

The rules are in `trimtab.migration`; what brokers do, in `agent.migration`.
"""
