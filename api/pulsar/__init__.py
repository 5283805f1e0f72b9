"""Pulsar's own paths, bodies and status codes, for pulsar-admin: one file for each resource."""
