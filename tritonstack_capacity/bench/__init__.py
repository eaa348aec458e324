"""Load on an endpoint, and what came of it: `tritonstack capacity bench`."""
