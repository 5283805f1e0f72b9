"""Why, and why not: of any bundle or broker in any round, from what the round leaves behind.

scene:       the round: what it was given, what it decided, what it remembers
accounts:    what the strategy compared, one strategy a file
witness:     a round with the account and the prediction of its strategy
bundles:     of a bundle: what became of it, and the rule that bound
brokers:     of a broker
options:     where a bundle could go, and what forbids the other brokers
nearest:     the one setting that would change the answer
telling:     what a round tells unasked, of whom
Nothing here decides: it asks the functions that did.
"""
