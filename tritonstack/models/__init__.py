"""The content of model folders: recipe, configurations, sources, digests, samples; and the manifest of an archive."""
