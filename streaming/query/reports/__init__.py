"""trimtab.load-reports as a source of Spark's: fetched and decoded in the same Python worker."""
