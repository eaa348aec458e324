"""Platforms that load a plan built for another: by its options, its TensorRT, its GPU and its packed Python."""

from __future__ import annotations

from tests.cases import cases
from tests.models.folders import make_engine, make_manifest
from tritonstack.engines.portability import serves_on
from tritonstack.models.manifest import EnvironmentEntry
from tritonstack.naming import Platform

A10G = {"tensorrt": "10.4.0", "gpu": "NVIDIA A10G", "compute_capability": "8.6"}


@cases("options, platform, serves")
def test_a_plan_of_24_09_on_an_a10g_serves_where_it_was_built_to(
    options: list[str], platform: str, serves: bool
) -> None:
    manifest = make_manifest(dependency="engine", engines={"fast": make_engine(options=tuple(options), **A10G)})
    assert serves_on(manifest, built=Platform.parse("24.09-a10g"), platform=Platform.parse(platform)) is serves


def test_every_engine_and_every_packed_python_must_serve_there() -> None:
    compatible = make_engine(options=("--hardwareCompatibilityLevel=ampere+", "--versionCompatible"), **A10G)
    places = {"built": Platform.parse("24.09-a10g"), "platform": Platform.parse("25.04-l4")}
    both = make_manifest(dependency="engine", engines={"fast": compatible, "other": make_engine(**A10G)})
    assert not serves_on(both, **places)
    one = make_manifest(dependency="engine", engines={"fast": compatible})
    assert serves_on(one, **places)
    packed = EnvironmentEntry(file="env.tar.gz", python="3.10", packages={})  # of 24.09; 25.04 has 3.12
    assert not serves_on(one.model_copy(update={"environment": packed}), **places)
    assert not serves_on(make_manifest(dependency="engine"), **places), "an archive with a plan of its own"
