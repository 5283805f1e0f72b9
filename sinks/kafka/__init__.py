"""Kafka: clients and their security, the topics, the job's claims, and records read and published.

The formats of records are in `trimtab.wire`.
"""
