"""The driver's right to act: claim, heartbeat, standby, and opening the store to its generation.

Claims are stored by `sinks.kafka.generation`.
"""
