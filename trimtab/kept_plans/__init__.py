"""Plans that are kept for people: what they would change, and what becomes of them.

What a cluster does with them is in `trimtab.cluster.plans`.
"""
