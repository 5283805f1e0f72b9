"""Plans that are kept for people: what they would change, and the states they go through.

What a cluster does with them is in `trimtab.cluster.plans`.
"""
