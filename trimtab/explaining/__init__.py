"""Explains what a round did with any bundle or broker, and why, from what the round leaves behind.

scene:       the round: its input, its decisions, its memory
accounts:    what the strategy compared, one file per strategy
witness:     a round with the account and the prediction of its strategy
bundles:     explains a bundle: its result, and the rule that decided
brokers:     explains a broker
rules:       a sentence for each rule by which a round refused, skipped or repaired
options:     where a bundle could go, and what forbids the other brokers
nearest:     the one setting that would change the answer
telling:     the explanations that every round emits
Nothing here decides: it asks the functions that did.
"""
