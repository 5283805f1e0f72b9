"""Kafka: clients and their security, topics, the job's claims, reading and publishing records.

The record formats are in `trimtab.wire`.
"""
