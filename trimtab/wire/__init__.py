"""Formats that processes share: load reports, rows, commands, records, intents, key names."""
