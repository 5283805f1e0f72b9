"""Brokers that store and deliver messages, their clients, and a checker of what these saw.

docs/traffic.md has the protocol on one page. The brokers of a cluster share a durable topic log,
fenced by the ownership epoch; a topic can be closed there and its clients sent to another cluster.
"""
