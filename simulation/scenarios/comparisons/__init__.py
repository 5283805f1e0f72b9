"""Many runs side by side: their summaries over the seeds, and the pages that show them.

What a single run yields is in `simulation.scenarios.outcomes`.
"""
