"""Overlays: variants of one model folder, each an archive of its own."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from tritonstack.archives.engine_recipe import Engine
from tritonstack.archives.export_recipe import Exports
from tritonstack.archives.sample_recipe import Sample
from tritonstack.recipe_part import InsidePath, RecipePart

Dependency = Literal["none", "python", "engine"]
Kind = Literal["onnx", "python", "ensemble", "pytorch", "tensorrt", "dali", "tensorflow"]


class Overlay(RecipePart):
    """What differs from the folder's recipe; every field that is not given is the folder's."""

    config: tuple[InsidePath, ...] = Field(
        (),
        description="Fragments of config.pbtxt, merged over the addressed model's in this order: a scalar replaces, a "
        "repeated field or message replaces the whole field, entries of maps are merged by their key.",
    )
    description: str | None = Field(None, min_length=1, description="One sentence: what the variant is.")
    kind: Kind | None = Field(None, description="What the addressed model is, where it differs.")
    dependency: Dependency | None = Field(None, description="What the archive depends on, where it differs.")
    exports: Exports | None = Field(None, description="The exports, where they differ: all of them.")
    engine: Engine | None = Field(None, description="The engine, where it differs.")
    sample: Sample | None = Field(None, description="The sample, where it differs.")

    def changes(self) -> dict[str, Any]:
        """Field of the recipe → the variant's value; ``engine: null`` is a change too, for every other null is none."""
        given = {name: getattr(self, name) for name in self.model_fields_set - {"config"}}
        return {name: value for name, value in given.items() if value is not None or name == "engine"}
