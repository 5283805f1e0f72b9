"""The commands about clusters: one file for each resource or verb.

What they ask and tell is in `control`; servers, the job and the demo are in `admin` itself.
"""
