"""The TensorRT models of a staged repository: which have a plan, and which still have the graph that one is built from.

trtexec's stand-in writes an ONNX graph with a mark in a plan's place: such a file is no plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tritonstack.models.contents import TENSORRT, is_plan
from tritonstack.models.folder import CONFIG, model_directories
from tritonstack.models.marked_plan import is_marked
from tritonstack.models.model_config import read_config

TRTEXEC = "trtexec-stand-in: the ONNX graph, marked, in the plan's place"


@dataclass(frozen=True, kw_only=True)
class TensorrtModel:
    """One TensorRT model of a repository.

    Attributes:
        name: its directory.
        versions: its version folders, the oldest first.
        plan: the file name that a plan of it has.
        plans: the plans that are there, marked ones included.
    """

    name: str
    versions: tuple[Path, ...]
    plan: str
    plans: tuple[Path, ...]

    @property
    def has_plan(self) -> bool:
        """Whether it has plans, and TensorRT wrote them."""
        return bool(self.plans) and not any(is_marked(path) for path in self.plans)


def tensorrt_models(repository: Path) -> tuple[TensorrtModel, ...]:
    """The TensorRT models of a repository, sorted by name."""
    found = []
    for directory in model_directories(repository):
        config = read_config((directory / CONFIG).read_text(encoding="utf-8", errors="replace"))
        if config.backend == TENSORRT:
            versions = sorted(
                (path for path in directory.iterdir() if _is_version(path)), key=lambda path: int(path.name)
            )
            plans = tuple(
                path for version in versions for path in sorted(version.iterdir()) if is_plan(path.name, config)
            )
            found.append(
                TensorrtModel(name=directory.name, versions=tuple(versions), plan=config.model_file, plans=plans)
            )
    return tuple(found)


def _is_version(path: Path) -> bool:
    return path.is_dir() and path.name.isdigit()
