"""The driver's right to act: claim, heartbeat, standby, and opening the store to its generation.

How claims are stored is in `sinks.kafka.generation`.
"""
