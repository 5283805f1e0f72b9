"""The prerequisites of trimtab: jars, an embedded Kafka and Redis, and the doctor's checks."""
