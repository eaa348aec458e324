"""Strict YAML, and bad input of every kind with its message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.config.environment_file import problems_of
from tritonstack.config import load_environment
from tritonstack.config.yaml_loader import LARGEST_FILE, YamlError, parse_yaml
from tritonstack.errors import InputError, Problem

SIGNS = ["a: ", "- ", "&x ", "*x ", "<<: ", "{", "}", "[", "]", ", ", "!!int ", "1", "\n", "  "]
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(10**9), 10**9), st.text(max_size=12))
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)


@given(VALUES)
def test_what_pyyaml_writes_is_read_back(value: Any) -> None:
    assert parse_yaml(yaml.safe_dump(value)).value == value


@given(st.text(max_size=200))
@settings(max_examples=100)
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    try:
        parse_yaml(text)
    except YamlError as error:
        assert error.found
        assert error.allowed


@given(st.lists(st.sampled_from(SIGNS)))
@settings(max_examples=100)
def test_any_mixture_of_yamls_signs_is_read_or_refused_in_words(parts: list[str]) -> None:
    try:
        parse_yaml("".join(parts))
    except YamlError as error:
        assert error.found


def test_a_repeated_key_is_reported_with_both_lines_and_the_first_value_is_kept() -> None:
    document = parse_yaml("a: 1\nb:\n  c: 2\n  c: 3\na: 4\n")
    assert document.value == {"a": 1, "b": {"c": 2}}
    assert sorted(document.repeated) == [(("a",), 1, 5), (("b", "c"), 3, 4)]


def test_dates_and_sexagesimal_looking_texts_keep_their_characters() -> None:
    document = parse_yaml("day: 2024-01-01\nrelease: 24.10\naccount: 0012\n")
    assert document.value["day"] == "2024-01-01"
    assert document.texts[("release",)] == "24.10"
    assert document.texts[("account",)] == "0012"


def test_anchors_and_merges_are_taken_and_own_keys_win() -> None:
    document = parse_yaml("base: &b {x: 1, y: 2}\nmine:\n  y: 3\n  <<: *b\nsame: *b\n")
    assert document.value == {"base": {"x": 1, "y": 2}, "mine": {"x": 1, "y": 3}, "same": {"x": 1, "y": 2}}
    assert document.line(("mine", "y")) == 3
    assert document.line(("mine", "x")) == 1


def test_a_bomb_of_aliases_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(YamlError, match="more values"):
        parse_yaml("\n".join(lines))


def test_a_huge_file_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(YamlError, match="characters"):
        parse_yaml("a" * (LARGEST_FILE + 1))


def test_an_error_names_its_line() -> None:
    with pytest.raises(YamlError) as caught:
        parse_yaml("a: 1\nb: [1, 2\nc: 3\n")
    assert caught.value.line == 3


def file_problems(path: Path) -> list[Problem]:
    """The problems that loading ``path`` ends with."""
    with pytest.raises(InputError) as caught:
        load_environment(path)
    assert caught.value.exit_code == 2
    return list(caught.value.problems)


CASES: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("bad_input.yaml").read_text())["cases"]


def lines(value: str | dict[str, Any]) -> str:
    """Lines of a file: a text as it is, a mapping as YAML writes it."""
    if isinstance(value, str):
        return value
    return "\n".join(f"{key}: {json.dumps(each, ensure_ascii=False)}" for key, each in value.items())


@pytest.mark.parametrize("name", CASES)
def test_bad_input_is_refused_by_its_field_alone_with_the_reason(name: str, tmp_path: Path) -> None:
    bad = CASES[name]
    header, endpoint = (lines(bad.get(part, "")) for part in ("header", "endpoint"))
    problems = problems_of(tmp_path, header=header, endpoint=endpoint, without=bad.get("without", ()))
    field = f"endpoints[0]{bad['field']}" if bad["field"].startswith(".") else bad["field"]
    assert {problem.field for problem in problems} == {field}
    assert [word for word in bad.get("says", ()) if word not in "\n".join(map(str, problems))] == []
    assert all(
        (each.file or "").startswith(f"{tmp_path}/local.yaml:") and each.found and each.allowed for each in problems
    )


FAULTY = """
environment: local
account: 123456789012
region: us-east-9
region: us-east-1
production: true
endpoints:
  - name: digits
    mode: multi-model
    release: 24.09
    instance_type: ml.g5.12xlarge
    models: [a, a, b.c]
    colour: red
    container: {model_load_gpu_limit: 0.8, log_verbose: loud}
    initial_instance_count: 1
  - name: digits
    mode: single-model
    release: "25.09"
    instance_type: ml.g5.xlarg
    models: [a, b]
    host_ami: al2-ami-sagemaker-inference-gpu-2
    timeouts: {model_download_seconds: 5}
"""


def test_every_wrong_type_is_reported_at_once_and_then_every_broken_rule(tmp_path: Path) -> None:
    path = tmp_path / "local.yaml"

    def places(text: str) -> list[tuple[str, str]]:
        path.write_text(text, encoding="utf-8")
        return [(str(each.file).removeprefix(f"{path}:"), each.field) for each in file_problems(path)]

    assert places(FAULTY) == [
        ("3", "account"),
        ("4", "region"),
        ("10", "endpoints[0].release"),
        ("12", "endpoints[0].models[2]"),
        ("13", "endpoints[0].colour"),
        ("14", "endpoints[0].container.log_verbose"),
        ("22", "endpoints[1].timeouts.model_download_seconds"),
    ]
    fixed = FAULTY.replace("123456789012", '"123456789012"').replace("24.09", '"24.09"').replace("b.c", "b")
    fixed = (
        fixed.replace("    colour: red\n", "").replace(", log_verbose: loud", "").replace("seconds: 5", "seconds: 60")
    )
    assert places(fixed) == [
        ("4", "region"),
        ("4", "region"),
        ("7", "endpoints"),
        ("11", "endpoints[0].instance_type"),
        ("12", "endpoints[0].models"),
        ("13", "endpoints[0].container.model_load_gpu_limit"),
        ("14", "endpoints[0].initial_instance_count"),
        ("18", "endpoints[1].instance_type"),
        ("19", "endpoints[1].models"),
        ("20", "endpoints[1].host_ami"),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "a mapping"),
        ("- a\n", "a mapping"),
        ("endpoints: 7\n", "a list"),
        ("endpoints: [7]\n", "a mapping"),
        ("a: [1, 2\n", "expected"),
        ("a: 1\n---\nb: 2\n", "one YAML document"),
        ("1: a\n", "a text as the key"),
        ("no: a\n", "a text as the key"),
        ("a: !!python/object:os.system x\n", "the tag"),
        ("a: &x [*x]\n", "inside its own anchor"),
        ("a: \x01\n", "printable"),
        ("a: !!int many\n", "a value of"),
        ("[" * 5000, "very deep nesting"),
    ],
)
def test_a_file_that_is_no_environment_is_an_error_that_names_its_kind(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "local.yaml"
    path.write_text(text, encoding="utf-8")
    assert any(words in str(problem) for problem in file_problems(path)), file_problems(path)


def test_a_missing_file_and_one_that_is_not_utf8_are_named(tmp_path: Path) -> None:
    assert "no such file" in str(file_problems(tmp_path / "nowhere.yaml")[0])
    path = tmp_path / "local.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in str(file_problems(path)[0])


def test_a_file_that_does_not_exist_names_those_that_do(tmp_path: Path) -> None:
    for name in ("dev", "local"):
        (tmp_path / f"{name}.yaml").touch()
    (problem,) = file_problems(tmp_path / "locl.yaml")
    assert (problem.found, problem.advice) == ("no such file", "Did you mean local?")
    assert problem.allowed.endswith(": dev, local")
    (without,) = file_problems(tmp_path / "elsewhere" / "local.yaml")
    assert without.advice == "work in a project's folder; tritonstack init FOLDER makes one"


UNSEEN = {"zero width": "\u200b", "right to left": "\u202e", "byte order": "\ufeff", "bell": "\x07", "line": "\u2028"}


@pytest.mark.parametrize("sign", UNSEEN.values(), ids=UNSEEN.keys())
def test_invisible_characters_are_refused_and_shown_as_escapes(sign: str, tmp_path: Path) -> None:
    escape = sign.encode("unicode_escape").decode()
    quoted = json.dumps(f"digits{sign}")
    fields = {
        "name": ("endpoints[0].name", f"name: {quoted}"),
        "argument": ("endpoints[0].container.additional_args", f"container: {{additional_args: [{quoted}]}}"),
        "unknown": (f"endpoints[0].co{sign}", f'"co{escape}": red'),
    }
    for field, line in fields.values():
        problems = problems_of(tmp_path, endpoint=line)
        message = str(InputError(problems))
        assert field in {problem.field for problem in problems}
        assert sign not in message
        assert f"{ord(sign):x}" in message.lower()
