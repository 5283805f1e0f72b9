"""`trimtab top`: a cluster live in a terminal, for a jump host without a browser.

What it shows it asks of the API's own paths; nothing is computed here, and nothing is changed.
"""
