"""Environment files and their edits, for tests."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from tests.tritonstack_capacity.sizing.rows import measurement, table_of
from tritonstack.config import load_environment
from tritonstack_capacity.sizing.capacity import DailyCurve
from tritonstack_capacity.sizing.environment_edit import EnvironmentEdit, environment_edit
from tritonstack_capacity.sizing.scaling_advice import ScalingChange, scaling_change

HEAD = """\
environment: dev
account: "123456789012"
region: us-east-1
production: false
"""


def endpoint_text(*lines: str, name: str = "digits", anchor: str = "") -> str:
    """An endpoint of a list, in lines; ``anchor`` stands after the dash."""
    own = [f"name: {name}", "mode: multi-model", 'release: "24.09"', "instance_type: ml.g4dn.xlarge", "models: [a]"]
    first, *others = [*([anchor] if anchor else []), *own, *lines]
    return "\n".join([f"  - {first}", *(f"    {line}" for line in others)]) + "\n"


def written(folder: Path, text: str, *, name: str = "dev") -> Path:
    """The file of environment ``name``, with ``text`` byte by byte."""
    file = folder / f"{name}.yaml"
    file.write_bytes(text.encode())
    return file


def change_of(
    file: Path,
    *,
    endpoint: str = "digits",
    rate: str = "600",
    load: str = "6000",
    factor: str | None = None,
    curve: DailyCurve | None = None,
) -> ScalingChange:
    """The advice for an endpoint of ``file``, from one measured row."""
    environment = load_environment(file)
    named = environment.endpoint(endpoint)
    assert named is not None
    [row] = table_of(measurement(rate=rate, usd="1"), load=load).rows
    told = None if factor is None else Decimal(factor)
    return scaling_change(named, row=row, production=environment.production, factor=told, curve=curve)


def edit_of(
    file: Path,
    *,
    endpoint: str = "digits",
    rate: str = "600",
    load: str = "6000",
    factor: str | None = None,
    curve: DailyCurve | None = None,
) -> EnvironmentEdit:
    """The same, as an edit."""
    change = change_of(file, endpoint=endpoint, rate=rate, load=load, factor=factor, curve=curve)
    return environment_edit(file, change)
