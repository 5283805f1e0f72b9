"""The command line `trimtab`, and what only it runs: demo, conformance kit, generated documents.

Code that brokers or the job run is in `agent` and `streaming`.
"""
