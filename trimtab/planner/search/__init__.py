"""The search for the fewest moves that bring a range of usage to the target, tried on a board.

Which ranges are real, and which bundle may go where, is in `trimtab.planner`.
"""
