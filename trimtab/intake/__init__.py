"""Operator ①: reports become snapshots; snapshots and records become the columns of a view.

The formats are in `trimtab.wire`; the view's columns in `trimtab.view`.
"""
