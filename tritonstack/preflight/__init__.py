"""Preflight: reasons why a deployment would fail, found by read-only requests to AWS. Never part of synthesis.

A check gives results: *passes*, *fails*, or *unknown* where AWS did not respond (a permission is missing, a time-out).
"""
