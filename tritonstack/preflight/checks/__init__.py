"""The checks, a file each; ``CHECKS`` of ``tritonstack.preflight.runner`` lists them."""
