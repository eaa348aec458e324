"""The GraphDef form of the Inception ensemble is for releases that have the backend, and is the ONNX form's model."""

from __future__ import annotations

import pytest

from tritonstack.lint import lint_folder
from tritonstack.lint.view import ServingTarget
from tritonstack.models.source import ArchiveSource
from tritonstack.paths import REPOSITORY

NAME, ONNX = "inception-ensemble-graphdef", "inception-ensemble"
FOLDERS = {name: REPOSITORY / "model_repos" / name for name in (NAME, ONNX)}


def rules(release: str) -> list[tuple[str, str]]:
    """What the linter finds in the folder for a release: rule and advice."""
    target = ServingTarget.of_names(release=release, instance_type="ml.g4dn.xlarge")
    return [(finding.rule, finding.advice) for finding in lint_folder(FOLDERS[NAME], target=target)]


@pytest.mark.parametrize("release", ["23.05", "24.09", "25.02"])
def test_the_folder_is_clean_for_a_release_with_the_tensorflow_backend(release: str) -> None:
    assert rules(release) == []


@pytest.mark.parametrize("release", ["25.03", "25.09"])
def test_a_release_without_it_is_refused_and_the_onnx_form_is_named(release: str) -> None:
    [(rule, advice)] = rules(release)
    assert rule == "backend-not-in-release"
    assert advice.startswith("Take release 24.09, or serve the model's ONNX form")


@pytest.mark.parametrize(
    ("of_onnx", "of_graphdef"),
    [
        ("inception-v3/labels.txt", "inception-graphdef/labels.txt"),
        ("inception-dali/config.pbtxt", "inception-dali/config.pbtxt"),
        ("sample/image.jpg", "sample/image.jpg"),
    ],
)
def test_both_forms_have_the_same_labels_decoding_step_and_sample(of_onnx: str, of_graphdef: str) -> None:
    assert (FOLDERS[ONNX] / of_onnx).read_bytes() == (FOLDERS[NAME] / of_graphdef).read_bytes()
    one, other = (ArchiveSource(name=name, folder=folder).recipe for name, folder in FOLDERS.items())
    assert (one.source, one.seed, one.sizes) == (other.source, other.seed, other.sizes)
