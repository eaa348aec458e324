"""Graphs and alarms of an environment as data, without the CDK.

Constructs render them for CloudWatch; ``tritonstack dashboard`` draws the same graphs as a page.
"""
