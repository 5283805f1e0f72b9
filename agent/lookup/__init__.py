"""Lookup from topic to bundle to owner: a broker's answers, and the clients' cache of them."""
