"""IAM of the local AWS: who makes a request, what it needs, and whether policies allow it."""
