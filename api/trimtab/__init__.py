"""trimtab's own paths under /trimtab/v1: one file for each resource.

Paths that Pulsar has too are in `api.pulsar`.
"""
