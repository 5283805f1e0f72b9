"""What came of earlier plans: predictions held against what followed, costs corrected, the breaker.

What is remembered for it is in `trimtab.state`.
"""
