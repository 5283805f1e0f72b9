"""Runs a recorded span of a job again, from an earlier export, and compares.

span:      which batches, of which query, from which exports
exports:   the state of a cluster after a batch
run:       the batches, one after another; their rounds, recorded and replayed
commands:  the commands of those rounds, stamped from the journal, compared with Kafka's
shadowed:  the same batches with a shadow strategy
inquiry:   explains one of their rounds
"""
