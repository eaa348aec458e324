"""``tritonstack update``: a model's next version in the place of the one that its folder has."""
