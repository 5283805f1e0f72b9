"""Metrics of the job: from batches and Spark's progress to what Prometheus reads.

Their names and help texts are in `trimtab.metrics`.
"""
