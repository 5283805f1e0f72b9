"""The agent's part of a blue-green migration: it takes its topics to green, one step at a time."""
