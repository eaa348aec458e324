"""The stacks of an environment as they are deployed: those that left its file, what they cost, and their deletion."""
