"""Model folders → archives → bucket: export, stage, lint, prove, pack, publish."""
