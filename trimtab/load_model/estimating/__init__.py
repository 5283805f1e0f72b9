"""Each bundle's load, learned from samples: how certain it is, and what is chance, shift or leap.

What a load takes of brokers is in `trimtab.load_model.resources`.
"""
