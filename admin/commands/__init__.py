"""The commands of `trimtab`: one file for each resource or verb.

What they ask and tell is in `control`; commands that need no control plane are in `tools`, and the
demo and the conformance kit in `admin` itself. `admin.cli` lists all, and imports those that are
called.
"""
