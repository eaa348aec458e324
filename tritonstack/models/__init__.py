"""What model folders state: recipe, configurations, sources, digests, samples; and the manifest of an archive."""
