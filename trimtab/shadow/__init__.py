"""A second strategy on the same stream, whose moves are counted but not made.

What is remembered of it is in `trimtab.state.shadow_state`.
"""
