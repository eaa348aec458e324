"""Environments whose archives need TensorRT engines."""

from __future__ import annotations

from pathlib import Path

from tests.config.environment_file import environment_text
from tests.models.folders import write_double
from tritonstack.config import load_environment
from tritonstack.served import Served, served_by

ENGINE = "dependency: engine\nengine: {shapes: {x: {min: [1, 1], opt: [4, 1], max: [8, 1]}}}\n"
T4, A10G, L4 = (
    "instance_type: ml.g4dn.xlarge",
    "instance_type: ml.g5.xlarge",
    "instance_type: ml.g6.xlarge\naccept_unlisted_instance_type: true",
)


def write_models(project: Path, *, engine: str = ENGINE) -> Path:
    """Model folders: ``double``, which Python computes, and ``fast``, which a TensorRT engine does."""
    write_double(project)
    folder = write_double(project, name="fast")
    config = folder / "fast" / "config.pbtxt"
    config.write_text(config.read_text().replace('backend: "python"', 'platform: "tensorrt_plan"'))
    recipe = folder / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("kind: python\n", "kind: tensorrt\n") + engine)
    return folder.parent


def environment_file(project: Path, *endpoints: str, header: str = "", models: str = "[fast]") -> Path:
    """An environment ``local`` whose endpoints ``e0``, ``e1``, … have these fields."""
    file = project / "local.yaml"
    first, *others = [
        environment_text(header=header, endpoint=f"name: e{number}\nmodels: {models}\n{fields}")
        for number, fields in enumerate(endpoints)
    ]
    file.write_text(first + "".join(text.partition("endpoints:\n")[2] for text in others))
    return file


def served_engines(project: Path, *endpoints: str, header: str = "", models: str = "[fast]") -> Served:
    """That environment, matched with its model folders."""
    file = environment_file(project, *endpoints, header=header, models=models)
    return served_by(load_environment(file), project / "model_repos", file=file)
