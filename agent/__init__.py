"""What runs beside each broker: it reports load, holds the lease, agrees on ownership and obeys.

What Redis and Kafka are asked is in `sinks`; what a request may do, in `trimtab.ownership`.
"""
