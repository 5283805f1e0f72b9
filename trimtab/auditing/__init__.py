"""What `trimtab.auditing.auditor` judges the journal by: the rules of ownership, stated once more.

Nothing here comes from the code that is audited but its words (`State`, `Event`) and its records: a
mistake in the state machine must not be the auditor's as well.
"""
