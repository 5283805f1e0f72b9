"""Plans that wait for a person: how a cluster keeps, follows, begins and ends them.

Their values and their life are in `trimtab.kept_plans`; what rounds decide is in `trimtab.plan`.
"""
