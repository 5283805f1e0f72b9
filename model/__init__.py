"""Small models of the ownership protocol, which SPIN checks to the end of their state spaces."""
