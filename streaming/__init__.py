"""The Spark job that turns load reports into commands."""
