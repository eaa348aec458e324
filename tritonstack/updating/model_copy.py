"""A copy of a model folder, which becomes its next version, and what may change of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tritonstack.model_files.onnx_graph import GraphTensor
from tritonstack.models.model_view import ModelView, view_model
from tritonstack.models.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class UpdateOptions:
    """What a model's new file does not state, and what may change."""

    inputs: tuple[GraphTensor, ...] = ()
    outputs: tuple[GraphTensor, ...] = ()
    packages: tuple[str, ...] = ()  # that a Python model needs and its folder does not state
    accept_changes: bool = False  # whether callers may have to change
    take_config: bool = False  # whether a new folder's config.pbtxt takes the old one's place


@dataclass(frozen=True, kw_only=True)
class ModelCopy:
    """A copy of a model folder that becomes its next version."""

    folder: Path
    recipe: Recipe
    member: str  # the Triton model that is replaced
    options: UpdateOptions

    @property
    def addressed(self) -> str:
        """The Triton model that requests reach."""
        return self.recipe.model or self.folder.name

    @property
    def directory(self) -> Path:
        """The replaced model's."""
        return self.folder / self.member

    @property
    def view(self) -> ModelView:
        return view_model(self.directory, (), root=self.folder)


def newest_version(view: ModelView) -> str:
    """The version that is served."""
    return (view.served_versions or view.versions or ("1",))[-1]
