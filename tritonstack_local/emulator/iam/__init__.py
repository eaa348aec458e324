"""IAM of the local AWS: the principal of a request, the actions that it needs, and whether policies allow them."""
