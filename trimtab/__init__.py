"""trimtab's decisions: pure, columnar; time is an argument; no clock, network, logs or Spark.

docs/architecture.md has its packages from top to bottom. Redis, Kafka and Spark are reached through
`sinks`, `sources` and `streaming`.
"""
