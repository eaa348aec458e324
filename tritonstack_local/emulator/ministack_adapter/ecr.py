"""``ministack.services.ecr``: repositories and images."""

from __future__ import annotations

from ministack.services import ecr

from tritonstack_local.emulator.ministack_adapter.private_names import Replaceable, Value

repositories = Value(ecr, "_repositories", "AccountRegionScopedDict")
images = Value(ecr, "_images", "AccountRegionScopedDict")
batch_get_image = Replaceable(ecr, "_batch_get_image", "data")
describe_images = Replaceable(ecr, "_describe_images", "data")
