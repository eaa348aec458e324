"""Release records: each model's current and earlier archives, what moved them, and rollback."""
