"""The pages under docs/ that are made from the code: ``make docs`` writes them, a test says which is not current."""
