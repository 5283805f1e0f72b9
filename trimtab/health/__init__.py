"""What must be repaired before load is balanced: brokers that are away, bundles without service.

How far ownership can be trusted at all is in `trimtab.doubt`.
"""
