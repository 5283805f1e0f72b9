"""Reviews earlier plans: compares predictions with results, corrects costs, trips the breaker.

Its memory is in `trimtab.state`.
"""
