"""What a change means: synthesised templates against the snapshots that are committed, without AWS and without CDK."""
