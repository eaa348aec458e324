"""The demo's models, built for real: trained, exported, proven, packed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.models.folders import places_in
from tritonstack.archives.build import build_models
from tritonstack.models.manifest import Manifest
from tritonstack.paths import REPOSITORY
from tritonstack.untrusted.unpacking import unpack


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Manifest]]:
    """Both archives, unpacked by name, and their manifests; built from the repository's folders without any cache."""
    root = tmp_path_factory.mktemp("digits")
    (root / "model_repos").symlink_to(REPOSITORY / "model_repos")
    places = places_in(root)
    summary = build_models(["digits-onnx", "digits-ensemble"], places=places)
    for item in summary.built:
        unpack(places.archive(item.name), root / item.name.model)
    return root, {item.name.model: item.manifest for item in summary.built}


def test_the_classifier_is_as_good_as_its_manifest_must_say(built: tuple[Path, dict[str, Manifest]]) -> None:
    figures = built[1]["digits-onnx"].figures
    assert figures["accuracy"] >= 0.95
    assert figures["held_out_images"] == 450
    assert figures["largest_difference"] <= 1e-4


def test_the_classifiers_archive_is_one_model_with_named_tensors(built: tuple[Path, dict[str, Manifest]]) -> None:
    root, manifests = built
    assert {manifest.dependency for manifest in manifests.values()} == {"none"}
    names = sorted(path.relative_to(root / "digits-onnx").as_posix() for path in (root / "digits-onnx").rglob("*"))
    assert names == ["digits-onnx", "digits-onnx/1", "digits-onnx/1/model.onnx", "digits-onnx/config.pbtxt"]
    model = manifests["digits-onnx"].model
    assert [(t.name, t.datatype, t.shape) for t in model.inputs] == [("pixels", "FP32", (-1, 64))]
    assert [(t.name, t.datatype, t.shape) for t in model.outputs] == [
        ("label", "INT64", (-1, 1)),
        ("probabilities", "FP32", (-1, 10)),
    ]


def test_the_ensembles_archive_holds_its_steps_and_the_same_classifier(built: tuple[Path, dict[str, Manifest]]) -> None:
    root, manifests = built
    ensemble = root / "digits-ensemble"
    assert sorted(path.name for path in ensemble.iterdir()) == ["digits-decode", "digits-ensemble", "digits-onnx"]
    assert list((ensemble / "digits-ensemble/1").iterdir()) == []
    same = Path("digits-onnx/1/model.onnx")
    assert (ensemble / same).read_bytes() == (root / "digits-onnx" / same).read_bytes()
    manifest = manifests["digits-ensemble"]
    assert manifest.backends == ("ensemble", "onnxruntime", "python")
    assert manifest.adapters.image is not None
    assert (manifest.adapters.image.input, manifest.adapters.image.encoding) == ("image", "png-bytes")
    assert manifest.sample.content is not None
    assert manifest.figures["sample_difference"] <= 2e-3
