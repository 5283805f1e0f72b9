"""One round: strategies propose, and the round grants or refuses each proposal.

`decide` runs it, with what is urgent (`urgent`) and what is not (`regular`); `disposal` grants or
refuses each move. The strategies are in `shedding`, `placement`, `splitting` and `merging`.
"""
