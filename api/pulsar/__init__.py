"""Pulsar's own paths, bodies and status codes, for pulsar-admin: one file for each resource.

Paths that Pulsar does not have are in `api.trimtab`.
"""
