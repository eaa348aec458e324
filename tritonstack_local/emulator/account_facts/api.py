"""What preflight asks of AWS and MiniStack lacks, put in place."""

from __future__ import annotations

from tritonstack_local.emulator.account_facts import aws_images, instance_offerings, key_dry_runs
from tritonstack_local.emulator.account_facts.price_list import price_list_service
from tritonstack_local.emulator.account_facts.service_quotas import service_quotas_service


def install() -> None:
    """Add services and operations to MiniStack's, once a process."""
    service_quotas_service().install()
    price_list_service().install()
    aws_images.install()
    instance_offerings.install()
    key_dry_runs.install()
