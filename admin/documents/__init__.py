"""Writes the pages of docs, and the parts of pages, that are made from code: one file each.

`make documents` writes all of them, and what else is made from code: docs/wire.md and the schemas
are made in `admin.wire`, the table of exit codes in `admin.exit_codes`.
"""
