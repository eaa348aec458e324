"""Strict YAML, and bad input of every kind with its message."""

from __future__ import annotations

import json
import os
import threading
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


@given(st.dictionaries(st.text("abcdef", min_size=1, max_size=5), st.integers(), min_size=1, max_size=9))
def test_every_key_knows_its_line(value: dict[str, int]) -> None:
    text = yaml.safe_dump(value, sort_keys=False)
    document = parse_yaml(text)
    for number, key in enumerate(value, start=1):
        assert document.line((key,)) == number
        assert document.line((key, "nothing inside")) == number


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


def test_a_key_that_stands_twice_is_noted_with_both_lines_and_the_first_value_is_kept() -> None:
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
def test_bad_input_is_refused_by_its_field_alone_and_says_why(name: str, tmp_path: Path) -> None:
    bad = CASES[name]
    header, endpoint = (lines(bad.get(part, "")) for part in ("header", "endpoint"))
    problems = problems_of(tmp_path, header=header, endpoint=endpoint, without=bad.get("without", ()))
    field = f"endpoints[0]{bad['field']}" if bad["field"].startswith(".") else bad["field"]
    assert {problem.field for problem in problems} == {field}
    assert [word for word in bad.get("says", ()) if word not in "\n".join(map(str, problems))] == []
    assert all(
        (each.file or "").startswith(f"{tmp_path}/local.yaml:") and each.found and each.allowed for each in problems
    )


def test_wrong_types_and_broken_rules_are_told_together(tmp_path: Path) -> None:
    path = tmp_path / "local.yaml"
    path.write_text(
        """
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
""",
        encoding="utf-8",
    )
    assert [(str(problem.file).removeprefix(f"{path}:"), problem.field) for problem in file_problems(path)] == [
        ("3", "account"),
        ("4", "region"),
        ("4", "region"),
        ("10", "endpoints[0].release"),
        ("11", "endpoints[0].instance_type"),
        ("12", "endpoints[0].models"),
        ("12", "endpoints[0].models[2]"),
        ("13", "endpoints[0].colour"),
        ("14", "endpoints[0].container.log_verbose"),
        ("14", "endpoints[0].container.model_load_gpu_limit"),
        ("15", "endpoints[0].initial_instance_count"),
        ("16", "endpoints[1].name"),
        ("19", "endpoints[1].instance_type"),
        ("20", "endpoints[1].models"),
        ("21", "endpoints[1].host_ami"),
        ("22", "endpoints[1].timeouts.model_download_seconds"),
    ]


@pytest.mark.parametrize("missing", ["name", "mode", "release", "instance_type", "models"])
def test_a_missing_required_field_hides_no_other_mistake(missing: str, tmp_path: Path) -> None:
    lines = "container: {additional_args: [a b]}\ninitial_instance_count: 0"
    fields = {problem.field for problem in problems_of(tmp_path, endpoint=lines, without=(missing,))}
    assert f"endpoints[0].{missing}" in fields
    assert "endpoints[0].initial_instance_count" in fields
    assert ("endpoints[0].container.additional_args[0]" in fields) == (missing not in {"release", "mode"})


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
def test_a_file_that_is_no_environment_says_what_it_is(text: str, words: str, tmp_path: Path) -> None:
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


def problems_in_time(path: Path) -> list[Problem]:
    """As ``file_problems``, for a file whose reading may never end."""
    found: list[list[Problem]] = []
    reading = threading.Thread(target=lambda: found.append(file_problems(path)), daemon=True)
    reading.start()
    reading.join(timeout=10)
    assert found, "reading it has not ended"
    return found[0]


def test_what_is_no_file_is_refused_by_its_kind_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.yaml")
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "loop.yaml").symlink_to(tmp_path / "loop.yaml")
    (tmp_path / "broken.yaml").symlink_to("nowhere")
    (tmp_path / "device.yaml").symlink_to("/dev/zero")
    for name, words in {
        "fifo": "a named pipe (FIFO)",
        "folder": "a directory",
        "loop": "which leads back to it",
        "broken": "a symbolic link to nowhere, which is not there",
        "device": "a device",
    }.items():
        [problem] = problems_in_time(tmp_path / f"{name}.yaml")
        assert words in problem.found
        assert problem.allowed == "a YAML file"


def test_null_is_told_from_a_value_without_quotes(tmp_path: Path) -> None:
    [problem] = problems_of(tmp_path, header="account: null")
    assert problem.field == "account"
    assert "quotes" not in problem.advice
    assert "null stands for none" in problem.advice


UNSEEN = {"zero width": "\u200b", "right to left": "\u202e", "byte order": "\ufeff", "bell": "\x07", "line": "\u2028"}


@pytest.mark.parametrize("sign", UNSEEN.values(), ids=UNSEEN.keys())
def test_characters_that_nobody_sees_are_refused_and_shown_as_escapes(sign: str, tmp_path: Path) -> None:
    escape = sign.encode("unicode_escape").decode()
    quoted = json.dumps(f"digits{sign}")
    fields = {
        "name": ("endpoints[0].name", f"name: {quoted}"),
        "argument": ("endpoints[0].container.additional_args", f"container: {{additional_args: [{quoted}]}}"),
        "unknown": (f"endpoints[0].co{sign}", f'"co{escape}": red'),
    }
    for field, line in fields.values():
        problems = problems_of(tmp_path, endpoint=line)
        said = str(InputError(problems))
        assert field in {problem.field for problem in problems}
        assert sign not in said
        assert f"{ord(sign):x}" in said.lower()


@pytest.mark.parametrize(
    ("endpoint", "fields"),
    [
        (
            (
                "scaling: {minimum: two, maximum: 3, concurrency: 5, scale_in_cooldown_seconds: 10, schedules: "
                "[{name: a, when: never, maximum: 2}, {name: b, when: 7, maximum: 2, time_zone: Mars}]}"
            ),
            {
                "minimum",
                "scale_in_cooldown_seconds",
                "schedules[0].when",
                "schedules[1].when",
                "schedules[1].time_zone",
            },
        ),
        (
            "container: {grpc_port: 80, additional_args: [--nope=3, 7, --http-port=1]}",
            {"grpc_port", "additional_args[0]", "additional_args[1]", "additional_args[2]"},
        ),
        ("data_capture: {percentage: all, days: 3}", {"", "percentage"}),
    ],
    ids=["scaling", "container", "data capture"],
)
def test_a_value_of_the_wrong_type_hides_no_mistake_beside_it(endpoint: str, fields: set[str], tmp_path: Path) -> None:
    section = endpoint.partition(":")[0]
    found = {problem.field for problem in problems_of(tmp_path, endpoint=endpoint)}
    assert found == {f"endpoints[0].{section}.{field}".removesuffix(".") for field in fields}


def test_a_value_of_the_wrong_type_hides_no_mistake_of_the_network_or_the_load_test(tmp_path: Path) -> None:
    header = (
        "network: {created: {cidr: 10.20.0.0/16, zones: [us-east-1a, eu-west-1a], flow_log_days: many}}\n"
        "load_test: {endpoints: [gone], log_days: many}"
    )
    found = {problem.field for problem in problems_of(tmp_path, header=header)}
    assert {"network.created.flow_log_days", "load_test.log_days"} < found
    assert "load_test.endpoints[0]" in found
    assert any(field.startswith("network.created.zones") for field in found)
