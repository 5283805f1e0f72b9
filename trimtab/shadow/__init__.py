"""A second strategy on the same stream, whose moves are counted but not made.

Its memory is in `trimtab.state.shadow_state`.
"""
