"""`trimtab-job`: the Spark query, and the threads of its driver around it.

What is decided is in `trimtab`; what Redis and Kafka are asked, in `sinks`.
"""
