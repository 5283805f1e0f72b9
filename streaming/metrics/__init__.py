"""What the job shows of its batches: metrics, and a log of records that it does not believe.

The metrics' names and help texts are in `trimtab.metrics`.
"""
