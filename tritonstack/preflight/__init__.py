"""What will fail in a deployment, before it fails: read-only questions to AWS. Never part of synthesis.

A check is a file of ``checks``, named after what it looks at. Each gives results: *passes*, *fails*, or *unknown*,
where AWS did not say (a permission is missing, it did not answer in time). What could not be known is never a pass.
"""
