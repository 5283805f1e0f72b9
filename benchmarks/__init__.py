"""Measures every claim about speed, against a peer in the same run."""
