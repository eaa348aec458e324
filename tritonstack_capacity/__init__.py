"""Capacity: load tests, sizing, simulation and prices of endpoints; the commands ``tritonstack capacity …``."""
