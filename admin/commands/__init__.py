"""The commands of `trimtab`: one file for each resource or verb.

What they ask and tell is in `control`; commands that need no control plane are in `tools`. The demo
and the conformance kit are in `admin` itself, with what commands share: how they connect, print and
end. `admin.cli` lists all, and imports those that are called.
"""
