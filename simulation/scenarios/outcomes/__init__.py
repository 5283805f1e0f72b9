"""What came of a run, judged by the true load: moves, ranges of usage, plans that were in vain.

Many runs side by side are in `simulation.scenarios.comparisons`.
"""
