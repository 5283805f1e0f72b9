"""The commands of `trimtab`: one file for each resource or verb.

What they ask and tell is in `control`; the demo, the conformance kit and the auditor's reader are
in `admin` itself, and `admin.cli` lists all commands and has the shortest.
"""
