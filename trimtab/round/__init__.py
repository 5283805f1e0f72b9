"""One round: strategies propose, and the round grants or refuses each proposal.

The strategies are in `shedding`, `placement`, `splitting` and `merging`.
"""
