"""Columns of measurements: the published load test's (AWS Machine Learning Blog, BERT large), for own tables too.

``tritonstack capacity bench`` writes such a table, ``tritonstack capacity size`` reads it.
"""

from __future__ import annotations

CONFIGURATION = "configuration_name"
INSTANCE_TYPE = "instance_type"
RATE = "invocations_per_min_per_instance"
LATENCY = "model_latency_as_printed"
"""Milliseconds."""
PRICE = "implied_hourly_price_usd"
GPUS = "gpus"
