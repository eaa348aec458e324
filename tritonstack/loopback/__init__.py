"""Servers on loopback: HTTP, and the requests that they refuse."""
