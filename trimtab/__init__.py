"""The decisions of trimtab: pure, columnar, told the time; no clock, network, logging or Spark."""
