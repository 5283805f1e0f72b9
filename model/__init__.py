"""Small models of the ownership protocol, which SPIN checks to the end of their state spaces.

The same protocol with the real agents, at random, is in `simulation.ownership`.
"""
