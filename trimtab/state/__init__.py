"""All that a cluster's rounds remember between batches: plain values, and how they are advanced.

How they are stored in a checkpoint is in `streaming.query.state`.
"""
