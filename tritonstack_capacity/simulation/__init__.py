"""A fleet before it exists: models, their requests and instances, simulated."""
