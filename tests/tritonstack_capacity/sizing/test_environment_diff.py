"""The scaling as a diff of an environment file: the file's settings once it is applied; all else stays."""

from __future__ import annotations

import contextlib
import re
import subprocess
from decimal import Decimal
from pathlib import Path

import pytest

from tests.tritonstack_capacity.sizing.rows import measurement, table_of
from tritonstack.config import load_environment
from tritonstack.config.loader import load_environments
from tritonstack.errors import InputError
from tritonstack.paths import REPOSITORY
from tritonstack_capacity.sizing.capacity import DailyCurve
from tritonstack_capacity.sizing.environment_diff import environment_diff
from tritonstack_capacity.sizing.scaling_advice import ScalingChange, scaling_change

HEAD = """\
environment: dev
account: "123456789012"
region: us-east-1
production: false
"""


def endpoint_text(*lines: str, name: str = "digits", anchor: str = "") -> str:
    """An endpoint of a list, in lines; ``anchor`` follows the dash."""
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
    share = None if factor is None else Decimal(factor)
    return scaling_change(named, row=row, production=environment.production, factor=share, curve=curve)


def applied(file: Path, **how: str | None) -> ScalingChange:
    """Let git apply the diff to ``file``; its change."""
    change = change_of(file, **how)  # type: ignore[arg-type]
    with contextlib.chdir(file.parent):
        diff = environment_diff(file, change)
        subprocess.run(["git", "apply"], input=diff.encode(), check=True, capture_output=True)
    return change


def test_an_endpoint_with_instance_pools_gets_its_scaling_after_its_name(tmp_path: Path) -> None:
    types = "    instance_types:  # in order of preference\n      - ml.g4dn.xlarge\n      - ml.g5.xlarge\n"
    own = '  - name: digits\n    mode: single-model\n    release: "24.09"\n'
    file = written(tmp_path, f"{HEAD}endpoints:\n{own}{types}    models: [a]\n")
    applied(file)
    [endpoint] = load_environment(file).endpoints
    assert endpoint.scaling is not None
    assert endpoint.instance_types == ("ml.g4dn.xlarge", "ml.g5.xlarge")
    assert "  - name: digits\n    scaling: {" in file.read_text()


FLOW = "{minimum: 2, maximum: 9, gpu_utilization: 70, requests_per_second: 1.50}"
STYLES = {
    "no scaling": ([], {}),
    "null": (["scaling: null  # later"], {}),
    "an empty value": (["scaling:", "timeouts: {model_download_seconds: 600}"], {}),
    "a mapping in a line": ([f"scaling: {FLOW}  # é {{}}: [x", "initial_instance_count: 4"], {"gpu_utilization": 70}),
    "a mapping over lines": (["scaling: {minimum: 2,  # least", "          maximum: 9, gpu_utilization: 70}"], {}),
    "a block": (["scaling:", "  # why", "  minimum: 4", "  maximum: 9", "", "  invocations_per_instance: 3000"], {}),
    "a factor": (["scaling: {safety_factor: 0.70, requests_per_second: 1.5, maximum: 9, minimum: 1}"], {}),
}


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["lines of Unix", "lines of Windows"])
@pytest.mark.parametrize(("lines", "kept"), STYLES.values(), ids=STYLES)
def test_a_file_of_any_style_has_the_advice_afterwards_and_nothing_else_changed(
    lines: list[str], kept: dict[str, float], end: str, tmp_path: Path
) -> None:
    text = f"{HEAD}endpoints:  # all\n{endpoint_text(*lines)}{endpoint_text('scaling: ' + FLOW, name='other')}"
    file = written(tmp_path, text.replace("\n", end))
    before = load_environment(file)
    advice = applied(file).advice
    after, edited = load_environment(file), file.read_bytes().decode()
    endpoint = after.endpoint("digits")
    assert endpoint is not None and endpoint.scaling is not None
    assert (endpoint.scaling.minimum, endpoint.scaling.maximum) == (advice.minimum, advice.maximum)
    assert endpoint.scaling.invocations_target == pytest.approx(float(advice.invocations_per_instance))
    assert kept.items() <= endpoint.scaling.model_dump().items()
    assert after.endpoint("other") == before.endpoint("other")
    assert len(edited.splitlines()) - len(text.splitlines()) <= 2
    assert re.findall("#[^\r\n]*", edited) == re.findall("#[^\r\n]*", text)
    assert set(re.findall("\r?\n", edited)) == {end}
    assert environment_diff(file, change_of(file)) == ""


COMMITTED = [
    (each.environment, endpoint.name)
    for each in load_environments(REPOSITORY / "environments")
    for endpoint in each.hosted_endpoints  # archives alone are on no endpoint, which could scale
]


@pytest.mark.parametrize(("name", "endpoint"), COMMITTED)
def test_the_diff_of_a_committed_environment_is_the_line_or_lines_of_scaling(
    name: str, endpoint: str, tmp_path: Path
) -> None:
    """One line in flow style; in block style a line for each value that changes."""
    file = written(tmp_path, (REPOSITORY / "environments" / f"{name}.yaml").read_text(), name=name)
    diff = environment_diff(file, change_of(file, endpoint=endpoint))
    changed = [line for line in diff.splitlines()[2:] if line[0] in "+-"]
    if "scaling: {minimum: " in changed[-1]:
        assert [line[0] for line in changed] in (["+"], ["-", "+"])
        return
    assert [line[0] for line in changed] == ["-", "-", "+", "+"]
    keys = [line[1:].partition(":")[0].strip() for line in changed]
    assert keys == ["maximum", "invocations_per_instance"] * 2


def test_an_advice_that_breaks_a_rule_is_no_diff_and_the_rule_is_named(tmp_path: Path) -> None:
    night = 'schedules: [{name: night, when: "cron(0 22 * * ? *)", minimum: 4}]'
    scaling = f"scaling: {{minimum: 2, maximum: 4, requests_per_second: 10, {night}}}"
    file = written(tmp_path, f"{HEAD}endpoints:\n{endpoint_text(scaling)}")
    with pytest.raises(InputError) as refused:
        environment_diff(file, change_of(file, load="600"))
    first, *others = refused.value.problems
    assert "breaks the rules below" in first.found
    assert [problem.file for problem in others] == [f"{file}:11"]
    assert "a maximum of 2 with a minimum of 4" in others[0].found


ANCHORED = "scaling: &s {minimum: 2, maximum: 4, requests_per_second: 9}"


@pytest.mark.parametrize(
    "endpoints",
    {
        "an alias": endpoint_text(ANCHORED, name="other") + endpoint_text("scaling: *s"),
        "the anchor of an alias": endpoint_text(ANCHORED) + endpoint_text("scaling: *s", name="other"),
        "the anchor of a number": endpoint_text("scaling: {minimum: 2, maximum: &n 4, requests_per_second: 9}")
        + endpoint_text("initial_instance_count: *n", name="other"),
        "an alias of a number": endpoint_text("initial_instance_count: &n 4", name="other")
        + endpoint_text("scaling: {minimum: 2, maximum: *n, requests_per_second: 9}"),
        "a merged scaling": endpoint_text(ANCHORED, name="other", anchor="&base") + "  - {<<: *base, name: digits}\n",
        "an endpoint that others merge": endpoint_text(anchor="&base") + "  - {<<: *base, name: other}\n",
        "an unusual form": endpoint_text()
        .replace("- name: digits", "- ? name\n    : digits")
        .replace("instance_type: ml.g4dn.xlarge", "instance_type: >-\n      ml.g4dn.xlarge"),
    }.items(),
    ids=lambda named: named[0],
)
def test_values_that_others_share_are_refused_with_what_to_write(endpoints: tuple[str, str], tmp_path: Path) -> None:
    file = written(tmp_path, f"{HEAD}endpoints:\n{endpoints[1]}")
    with pytest.raises(InputError) as refused:
        environment_diff(file, change_of(file))
    [problem] = refused.value.problems
    assert "an anchor, an alias, a merge" in problem.found
    assert "scaling.maximum: 20" in problem.advice
