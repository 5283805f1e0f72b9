"""What traffic takes of brokers' resources: its cost on each kind of broker, and bundles' needs.

How large each bundle's load is, is in `trimtab.load_model.estimating`.
"""
