"""Load reports: what the host and its control group measure, what is due, and its way to Kafka.

The format is in `trimtab.wire.load_report`.
"""
