"""The edit of an environment file: what it says then, and that every other byte stays."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tritonstack_capacity.sizing.edits import HEAD, edit_of, endpoint_text, written
from tests.tritonstack_capacity.sizing.environment_texts import OWN_KEYS, environment_texts
from tritonstack.config import Environment, Scaling, load_environment
from tritonstack.config.loader import load_environments
from tritonstack.errors import InputError, WorkFailedError
from tritonstack.paths import REPOSITORY


def without_values(text: str) -> str:
    """``text`` less the values that an edit may replace."""
    names = "|".join((*OWN_KEYS, "initial_instance_count"))
    return re.sub(rf"(\b(?:{names}): ?)[^,{{}}\s#]*", r"\1", text)


def keeps_every_character(kept: str, text: str) -> bool:
    """Whether the characters of ``kept`` stand in ``text``, in their order."""
    characters = iter(text)
    return all(character in characters for character in kept)


def without_scaling(environment: Environment, *, endpoint: str) -> dict[str, Any]:
    """All settings but those that an edit of ``endpoint`` may change."""
    told = environment.model_dump()
    [own] = [each for each in told["endpoints"] if each["name"] == endpoint]
    own.pop("initial_instance_count")
    scaling = own.pop("scaling") or Scaling(minimum=1, maximum=1).model_dump()
    own["others"] = {name: value for name, value in scaling.items() if name not in OWN_KEYS}
    return told


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
    assert keeps_every_character(without_values(text), edit.after)
    assert len(edit.after.splitlines()) - len(text.splitlines()) <= 2
    assert re.findall("# comment.*", edit.after) == re.findall("# comment.*", text)
    assert set(re.findall("\r?\n", edit.after)) == set(re.findall("\r?\n", text))
    assert not edit_of(file, endpoint=name, rate=rate, load=load, factor=factor).changed


COMMITTED = [
    (each.environment, endpoint.name)
    for each in load_environments(REPOSITORY / "environments")
    for endpoint in each.endpoints
]


@pytest.mark.parametrize(("name", "endpoint"), COMMITTED)
def test_an_edit_of_a_committed_environment_is_one_line_and_a_second_one_is_none(
    name: str, endpoint: str, tmp_path: Path
) -> None:
    source = REPOSITORY / "environments" / f"{name}.yaml"
    file = written(tmp_path, source.read_bytes().decode(), name=name)
    edit = edit_of(file, endpoint=endpoint)
    edit.write()
    changed = [line for line in edit.diff.splitlines()[2:] if line[0] in "+-"]
    assert [line[0] for line in changed] in (["+"], ["-", "+"])
    assert "scaling: {minimum: " in changed[-1]
    kept = [line for line in file.read_text().splitlines() if line != changed[-1][1:]]
    replaced = [line for line in source.read_text().splitlines() if line != changed[0][1:]]
    assert kept == replaced
    again = edit_of(file, endpoint=endpoint)
    assert (again.changed, again.diff) == (False, "")
    again.write()
    assert file.read_bytes().decode() == edit.after


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "\n"])
def test_git_applies_the_diff_to_what_is_written(end: str, last: str, tmp_path: Path) -> None:
    text = f"{HEAD}endpoints:\n{endpoint_text('initial_instance_count: 1   # é').rstrip()}{last}".replace("\n", end)
    file = written(tmp_path, text)
    edit = edit_of(file)
    patch = edit.diff.replace(str(file), file.name)
    subprocess.run(["git", "apply", "-p0"], cwd=tmp_path, input=patch.encode(), check=True, capture_output=True)
    assert file.read_bytes().decode() == edit.after


def test_an_edit_that_breaks_a_rule_is_not_made_and_the_rule_is_named(tmp_path: Path) -> None:
    night = 'schedules: [{name: night, when: "cron(0 22 * * ? *)", minimum: 4}]'
    scaling = f"scaling: {{minimum: 2, maximum: 4, requests_per_second: 10, {night}}}"
    file = written(tmp_path, f"{HEAD}endpoints:\n{endpoint_text(scaling)}")
    before = file.read_bytes()
    with pytest.raises(InputError) as refused:
        edit_of(file, load="600")
    first, *others = refused.value.problems
    assert "nothing is written" in first.allowed
    assert [problem.file for problem in others] == [f"{file}:11"]
    assert "a maximum of 2 with a minimum of 4" in others[0].found
    assert file.read_bytes() == before


def test_a_link_stays_a_link_and_the_file_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    file = written(tmp_path / "kept", f"{HEAD}endpoints:\n{endpoint_text()}")
    file.chmod(0o640)
    link = tmp_path / "dev.yaml"
    link.symlink_to(file)
    edit = edit_of(link)
    edit.write()
    assert link.is_symlink()
    assert file.read_bytes().decode() == edit.after
    assert file.stat().st_mode & 0o777 == 0o640


def test_a_write_that_fails_leaves_the_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = written(tmp_path, f"{HEAD}endpoints:\n{endpoint_text()}")
    before = file.read_bytes()
    edit = edit_of(file)

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(WorkFailedError, match="not written: No space left"):
        edit.write()
    assert file.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["dev.yaml"]
