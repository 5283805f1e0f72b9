"""Load reports: the JSON that brokers write, checked once, and decoded into columns or rejected.

What is kept of them is a snapshot: `trimtab.intake`.
"""
