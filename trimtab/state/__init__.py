"""Everything a cluster's rounds remember between batches: plain values and their updates.

`streaming.query.state` stores them in a checkpoint.
"""
