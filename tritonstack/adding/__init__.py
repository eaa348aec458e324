"""``tritonstack add``: a model's file, folder or archive → a model folder with recipe, configuration and sample."""
