"""What is deployed: one stage per environment, in it the artifacts stack and one serving stack per endpoint."""
