"""Queries and intents of the control plane."""
