"""The auditor of ownership, with its own statement of the rules that the journal must keep.

It takes only words (`State`, `Event`) and records from the audited code: a mistake in the state
machine must not be the auditor's as well.
"""
