"""Models that are put onto an endpoint of an environment file, whose other characters stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cases import cases
from tests.config.environment_file import environment_text, write_environment
from tritonstack.config import load_environment
from tritonstack.config.model_entries import endpoint_for_models, model_entries, model_removal
from tritonstack.errors import InputError


@cases("written, expected")
def test_models_come_behind_those_that_are_listed_and_nothing_else_changes(
    tmp_path: Path, written: str, expected: str
) -> None:
    text = environment_text(endpoint="models: MODELS\ndescription: a b")
    file = tmp_path / "local.yaml"
    file.write_text(text.replace("MODELS", written))
    entries = model_entries(file, endpoint="digits", models=["iris", "wine"])
    entries.write()
    assert file.read_text() == text.replace("MODELS", expected)


@pytest.mark.parametrize(
    ("written", "rest"),
    [("models: [digits-onnx]   # one", "   # one"), ("models:\n      - digits-onnx\n\n    # below", "\n\n    # below")],
)
def test_a_variant_takes_the_place_of_the_list_with_the_model_that_is_there(
    tmp_path: Path, written: str, rest: str
) -> None:
    file = tmp_path / "local.yaml"
    file.write_text(environment_text(endpoint="mode: single-model\nmodels: MODELS").replace("models: MODELS", written))
    before = file.read_text()
    assert endpoint_for_models(file, name=None, as_variant=True)[1].name == "digits"
    model_entries(file, endpoint="digits", models=["iris"], variant="new").write()
    lines = "- {name: current, model: digits-onnx, weight: 1}\n      - {name: new, model: iris, weight: 0}"
    assert file.read_text() == before.replace(written, f"variants:\n      {lines}{rest}")
    with pytest.raises(InputError, match=r"(?s)digits with two variants.*`mode: single-model` and"):
        endpoint_for_models(file, name="digits", as_variant=True)


def test_a_list_that_other_places_share_is_not_changed(tmp_path: Path) -> None:
    text = environment_text(endpoint="models: &all [digits-onnx]")
    other = (
        text.partition("endpoints:\n")[2].replace("name: digits", "name: other").replace("&all [digits-onnx]", "*all")
    )
    file = tmp_path / "local.yaml"
    file.write_text(text + other)
    entries = model_entries(file, endpoint="digits", models=["iris"])
    with pytest.raises(InputError, match="iris at the end of `models:` of endpoint digits"):
        entries.write()
    assert file.read_text() == text + other


def test_the_endpoint_is_the_named_one_or_the_only_one_that_takes_several_models(tmp_path: Path) -> None:
    file = write_environment(tmp_path)
    assert endpoint_for_models(file, name=None)[1].name == endpoint_for_models(file, name="digits")[1].name == "digits"
    with pytest.raises(InputError, match=r"(?s)no endpoint digit\b.*--endpoint with one of digits"):
        endpoint_for_models(file, name="digit")
    write_environment(tmp_path, endpoint="mode: single-model")
    with pytest.raises(InputError, match="no endpoint with `mode: multi-model`"):
        endpoint_for_models(file, name=None)
    with pytest.raises(InputError, match=r"(?s)endpoint digits in single-model mode.*or --variant NAME"):
        endpoint_for_models(file, name="digits")


def test_an_environment_without_an_endpoint_gets_one(tmp_path: Path) -> None:
    file = tmp_path / "local.yaml"
    file.write_text(environment_text().partition("endpoints:")[0] + "endpoints: []   # none yet\ntags: {team: a}\n")
    _, endpoint = endpoint_for_models(file, name=None)
    assert (endpoint.name, endpoint.multi_model) == ("models", True)
    model_entries(file, endpoint="models", models=["iris", "wine"]).write()
    environment = load_environment(file)
    assert [(each.name, each.models) for each in environment.endpoints] == [("models", ("iris", "wine"))]
    assert environment.tags == {"team": "a"}
    model_entries(file, endpoint="models", models=["more"]).write()
    assert load_environment(file).endpoints[0].models == ("iris", "wine", "more")


@pytest.mark.parametrize(
    ("region", "release"), [("us-east-1", "26.05"), ("'eu-west-1'", "26.05"), ("cn-north-1", "25.04")]
)
def test_a_first_endpoint_has_a_release_of_the_files_region_and_says_what_is_unproved(
    tmp_path: Path, region: str, release: str
) -> None:
    file = tmp_path / "local.yaml"
    head = f'environment: local\naccount: "123456789012"\nregion: {region}\nproduction: false\n'
    file.write_text(f"{head}endpoints: []\n")
    assert endpoint_for_models(file, name=None)[1].release == release
    model_entries(file, endpoint="models", models=["iris"]).write()
    [line] = [each for each in file.read_text().splitlines() if "release:" in each]
    assert ("unproved on a GPU: its CUDA 13.2.1 on driver 580 (CUDA 13.0)" in line) == (release == "26.05")


@cases("written, expected")
def test_a_removed_model_leaves_the_other_lines_as_they_are(tmp_path: Path, written: str, expected: str) -> None:
    text = environment_text(endpoint="models: MODELS\ndescription: a b")
    file = tmp_path / "local.yaml"
    file.write_text(text.replace("MODELS", written))
    removal = model_removal(file, ["iris", "wine"])
    assert removal.removed.keys() == {"digits"}
    assert removal.text == text.replace("MODELS", expected)
    assert removal.refused(emptied_too=False, advice="") == []


def test_an_endpoint_goes_with_its_only_model_and_a_shared_list_changes_once(tmp_path: Path) -> None:
    text = environment_text(endpoint="models: &all [digits-onnx, iris]") + "  # of both\n"
    others = [
        environment_text(endpoint=f"name: {name}\nmodels: {models}").partition("endpoints:\n")[2]
        for name, models in (("shared", "*all"), ("alone", "[iris]   # gone"))
    ]
    file = tmp_path / "local.yaml"
    file.write_text(text + "".join(others))
    removal = model_removal(file, ["iris"])
    assert removal.emptied == ("alone",)
    assert [each.advice for each in removal.refused(emptied_too=False, advice="also it")] == ["also it"]
    assert removal.refused(emptied_too=True, advice="") == []
    assert removal.text == text.replace(", iris", "") + others[0]


def test_a_variant_is_not_removed_but_ended_first(tmp_path: Path) -> None:
    variants = "[{name: one, model: iris, weight: 1}, {name: two, model: digits-onnx, weight: 1}]"
    lines = environment_text(endpoint="mode: single-model\nvariants: " + variants, without=["models"])
    file = tmp_path / "local.yaml"
    file.write_text(lines)
    [problem] = model_removal(file, ["iris"]).refused(emptied_too=True, advice="")
    assert "two variants" in problem.found
    assert "tritonstack docs updates#two-variants" in problem.advice
