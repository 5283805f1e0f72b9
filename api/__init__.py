"""The control plane over HTTP (`trimtab api`): Pulsar's admin and lookup paths, and trimtab's own.

What a request asks or tells is in `control`; this is how it is asked and answered over HTTP.
"""
