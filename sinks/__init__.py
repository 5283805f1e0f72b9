"""Redis and Kafka out: ownership, command streams, journal, dead letters."""
