"""Kafka input: load reports as parcels, control intents and the ownership journal as rows.

What Kafka is written with is in `sinks.kafka`; the formats are in `trimtab.wire`.
"""
