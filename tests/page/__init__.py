"""The web page in a real browser, and the paths that only it asks."""
