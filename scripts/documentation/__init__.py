"""The pages under docs/ that are generated from the code: ``make docs`` writes them, a test names those out of date."""
