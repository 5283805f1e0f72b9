"""Blue-green migration of topics to another cluster (PIP-188): its values, tables and rules.

*blue* is the cluster that is left, *green* the one that takes over. Nothing here knows a clock or a
network. Operator ② decides with it (`trimtab.cluster.intents.migrations`), agents act by it
(`agent.migration`).
"""
