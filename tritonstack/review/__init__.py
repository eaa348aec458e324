"""Effects of a change: synthesised templates against the committed snapshots, without AWS and without CDK."""
