"""A sentence for each rule by which a round refuses, skips or repairs, or people hold a bundle.

refusals: a wish that the round did not grant
skips:    a round that asked no strategy
excluded: a bundle that no strategy could move: its record, its owner, a move before
controls: a bundle that people keep where it is, or whose change waits for them
repairs:  a change for another reason than balance
What a strategy compared is in `trimtab.explaining.accounts`.
"""
