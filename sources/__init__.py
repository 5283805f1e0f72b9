"""Kafka input: load reports, control intents and the ownership journal as Spark readers."""
