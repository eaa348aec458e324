"""The edit of an environment file: what it says then, and that every other byte stays."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sizing.environment_texts import OWN_KEYS, environment_texts
from tests.sizing.rows import measurement, table_of
from tritonstack.settings import Environment, Scaling, load_environment
from tritonstack.sizing.environment_edit import EnvironmentEdit, environment_edit
from tritonstack.sizing.scaling_change import scaling_change

HEAD = """\
environment: dev
account: "123456789012"
region: us-east-1
production: false
"""


def edit_of(
    file: Path, *, endpoint: str = "digits", rate: str = "600", load: str = "6000", factor: str | None = None
) -> EnvironmentEdit:
    environment = load_environment(file)
    named = environment.endpoint(endpoint)
    assert named is not None
    [row] = table_of(measurement(rate=rate, usd="1"), load=load).rows
    told = None if factor is None else Decimal(factor)
    change = scaling_change(named, row=row, production=environment.production, factor=told, curve=None)
    return environment_edit(file, change)


def written(folder: Path, text: str, *, name: str = "dev") -> Path:
    file = folder / f"{name}.yaml"
    file.write_bytes(text.encode())
    return file


def endpoint_text(*lines: str, name: str = "digits") -> str:
    own = [f"name: {name}", "mode: multi-model", 'release: "24.09"', "instance_type: ml.g4dn.xlarge", "models: [a]"]
    first, *others = [*own, *lines]
    return "\n".join([f"  - {first}", *(f"    {line}" for line in others)]) + "\n"


def untouched(text: str) -> list[str]:
    """The lines that no edit has a reason to touch: no setting of it, no endpoint on a single line."""
    own = re.compile(rf"{'|'.join(OWN_KEYS)}|initial_instance_count|- +\{{")
    return [line for line in text.splitlines() if not own.search(line)]


def without_scaling(environment: Environment, *, endpoint: str) -> dict[str, Any]:
    """All settings but those that an edit of ``endpoint`` may change."""
    settings = environment.model_dump()
    [own] = [each for each in settings["endpoints"] if each["name"] == endpoint]
    own.pop("initial_instance_count")
    scaling = own.pop("scaling") or Scaling(minimum=1, maximum=1).model_dump()
    own["others"] = {name: value for name, value in scaling.items() if name not in OWN_KEYS}
    return settings


@given(
    text=environment_texts(),
    numbers=st.tuples(
        st.sampled_from(("600", "37", "1335.3", "0.5")),
        st.sampled_from(("6000", "1", "9999.5")),
        st.none() | st.sampled_from(("0.5", "0.333", "1")),
    ),
    which=st.integers(0, 2),
)
def test_any_file_says_the_advice_afterwards_and_nothing_else_changed(
    tmp_path_factory: pytest.TempPathFactory, text: str, numbers: tuple[str, str, str | None], which: int
) -> None:
    rate, load, factor = numbers
    file = written(tmp_path_factory.mktemp("environments"), text)
    before = load_environment(file)
    name = before.endpoints[which % len(before.endpoints)].name
    edit = edit_of(file, endpoint=name, rate=rate, load=load, factor=factor)
    assert file.read_bytes().decode() == text
    edit.write()
    assert file.read_bytes().decode() == edit.after

    advice = edit.change.advice
    after = load_environment(file)
    endpoint = after.endpoint(name)
    assert endpoint is not None
    assert endpoint.scaling is not None
    scaling = endpoint.scaling
    assert (scaling.minimum, scaling.maximum) == (advice.minimum, advice.maximum)
    assert scaling.invocations_target == pytest.approx(float(advice.invocations_per_instance))
    assert scaling.minimum <= endpoint.initial_instance_count <= scaling.maximum
    old = before.endpoint(name)
    assert old is not None
    if old.scaling is not None:
        assert scaling.minimum == old.scaling.minimum
    assert without_scaling(after, endpoint=name) == without_scaling(before, endpoint=name)
    assert untouched(edit.after) == untouched(text)
    assert re.findall("# comment.*", edit.after) == re.findall("# comment.*", text)
    assert set(re.findall("\r?\n", edit.after)) == set(re.findall("\r?\n", text))
    assert not edit_of(file, endpoint=name, rate=rate, load=load, factor=factor).changed
