"""What has to be there before trimtab runs: jars, an embedded Kafka and Redis, the doctor."""
