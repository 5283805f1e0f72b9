"""The web page at `/` for people on call: what it shows comes from the paths under /trimtab/v1.

`files/` has the page itself, plain HTML, CSS and ES modules; docs/page.md says what is where.
`overview.py` and `live.py` are the paths that only it asks.
"""
