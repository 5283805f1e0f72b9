"""Redis and Kafka, read and written: `sinks.redis`, `sinks.kafka`, and the errors of both.

No decision is made here, and no thread is started.
"""
