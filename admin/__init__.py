"""The commands of `trimtab`: a file a command family, a package where it takes more.

What brokers or the job run is in `agent` and `streaming`.
"""
