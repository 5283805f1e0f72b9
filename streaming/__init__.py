"""`trimtab-job`: the Spark query, and the threads of its driver around it.

Decisions are made in `trimtab`; the requests to Redis and Kafka are in `sinks`.
"""
