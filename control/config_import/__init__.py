"""Reads Pulsar's broker.conf and writes trimtab's settings.

The settings are defined in `trimtab.settings`.
"""
