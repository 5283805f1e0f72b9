"""Plans that are kept for people: what they would change, and what becomes of them."""
