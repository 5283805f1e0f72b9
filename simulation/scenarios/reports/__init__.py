"""What the job learns of a simulated fleet: reports that are noisy, late or lost, as a view.

The true state is in `simulation.scenarios.world`.
"""
