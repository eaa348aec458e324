"""The CDK in one process: the validator takes four fifths of a synthesis, and has a gate of its own (tests/stacks)."""

from __future__ import annotations

import os

os.environ["CDK_VALIDATION"] = "false"
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")
