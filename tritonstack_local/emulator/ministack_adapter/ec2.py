"""``ministack.services.ec2``: subnets and VPC endpoints."""

from __future__ import annotations

from ministack.services import ec2

from tritonstack_local.emulator.ministack_adapter.private_names import Value

subnets = Value(ec2, "_subnets", "AccountRegionScopedDict")
vpc_endpoints = Value(ec2, "_vpc_endpoints", "AccountRegionScopedDict")
