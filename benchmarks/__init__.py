"""Every claim about speed, measured against a peer in the same run."""
