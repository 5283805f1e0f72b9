"""Load reports: checked once, and decoded into columns or rejected.

Not here: the JSON that brokers write (`trimtab.wire.load_report`).
"""
