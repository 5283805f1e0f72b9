"""trimtab's decisions: pure, columnar; time is an argument; no clock, network, logs or Spark."""
