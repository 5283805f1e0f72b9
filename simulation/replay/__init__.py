"""Runs a recorded span of a job again, from what it exported before, and compares.

span:      which batches, of which query, from which exports
exports:   what was held of a cluster after a batch
run:       the batches, one after another; their rounds, recorded and again
commands:  what those rounds asked for, stamped as the journal says, and what Kafka has
shadowed:  the same batches with a shadow strategy
inquiry:   a round of them, asked why
"""
