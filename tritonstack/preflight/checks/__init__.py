"""The checks, a file each: ``all_checks`` of ``tritonstack.preflight.runner`` lists them."""
