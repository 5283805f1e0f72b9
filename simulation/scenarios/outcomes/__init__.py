"""The results of a run, judged by the true load: moves, ranges of usage, plans that did not help.

Many runs side by side are in `simulation.scenarios.comparisons`.
"""
