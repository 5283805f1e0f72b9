"""Topic to bundle to owner: what a broker answers, and what its clients remember of it."""
