"""The commands of `trimtab`: one file, or one package, for each command family.

Code that brokers or the job run is in `agent` and `streaming`.
"""
