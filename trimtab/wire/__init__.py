"""Formats that processes share: load reports, rows, commands, records, intents, key names.

How they are sent and stored is in `sinks`; what decisions make of them, in the other packages.
"""
