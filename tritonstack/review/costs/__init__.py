"""Costs of a change an hour: amounts, the prices that they are of, and the table."""
