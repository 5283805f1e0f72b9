"""The control plane over HTTP (`trimtab api`): Pulsar's admin and lookup paths, and trimtab's own.

Paths, tokens, roles, errors and the audit log. What a request reads or changes is in `control`.
"""
