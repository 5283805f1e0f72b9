"""Load reports: measuring the host and its control group, when one is due, and sending it to Kafka.

The format is in `trimtab.wire.reports.load_report`.
"""
