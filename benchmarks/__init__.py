"""Measures every claim about speed, against a peer in the same run.

What a simulated strategy decides is compared in `simulation.scenarios`.
"""
