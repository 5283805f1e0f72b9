"""Access to Redis and Kafka: `sinks.redis`, `sinks.kafka`, and the errors of both.

It makes no decisions and starts no threads.
"""
