"""What is believed of load: estimates of each bundle, costs of traffic, and how sure they are.

How moves are chosen from it is in `trimtab.planner`.
"""
