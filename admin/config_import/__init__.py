"""Reads Pulsar's broker.conf and writes trimtab's settings.

What a setting means is in `trimtab.settings`.
"""
