"""What is watched of an environment: the graphs of its dashboard and its alarms, as data that needs no CDK.

The CDK constructs render these definitions for CloudWatch, ``tritonstack dashboard`` draws the same ones as a page.
"""
