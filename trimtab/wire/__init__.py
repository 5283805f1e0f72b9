"""The formats that processes share: load reports, snapshots, commands, records, intents, key names."""
