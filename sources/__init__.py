"""Kafka input: load reports, control intents and the ownership journal as Spark readers.

What Kafka is written with is in `sinks.kafka`; the formats are in `trimtab.wire`.
"""
