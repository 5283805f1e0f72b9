"""Pulsar's own shedders in a process of their own: a small Java program and what runs it.

What is measured beside them is in `benchmarks`.
"""
