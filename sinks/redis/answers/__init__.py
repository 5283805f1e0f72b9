"""What Redis keeps to answer people: explanations of rounds, kept plans, outcomes of intents.

Nothing is decided by it: if it is lost, trimtab.rounds and a replay have it. What brokers obey is
in the other modules.
"""
