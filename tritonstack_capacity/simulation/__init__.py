"""A fleet before it exists: models, their calls and instances, simulated."""
