"""AWS partitions: which one a region is in, and the suffix of its host names."""

from __future__ import annotations

_PARTITIONS = (("cn-", "aws-cn"), ("us-gov-", "aws-us-gov"))


def partition(region: str) -> str:
    """The partition that ARNs of ``region`` name: ``aws``, ``aws-cn`` or ``aws-us-gov``."""
    return next((name for prefix, name in _PARTITIONS if region.startswith(prefix)), "aws")


def dns_suffix(region: str) -> str:
    """The suffix of a registry's host name in ``region``; China has one of its own."""
    return "amazonaws.com.cn" if partition(region) == "aws-cn" else "amazonaws.com"
