"""The load model: estimates of each bundle, costs of traffic, and their uncertainty.

`trimtab.planner` chooses moves from it.
"""
