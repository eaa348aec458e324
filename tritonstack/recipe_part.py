"""What every part of a recipe shares: the base class, paths inside the model folder, and names."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from tritonstack.naming import NAME_PATTERN


class RecipePart(BaseModel):
    """A mapping of the recipe: closed to unknown fields, and immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _inside(path: str) -> str:
    """A path below the model folder, with forward slashes."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or "\\" in path or str(pure) in ("", "."):
        raise ValueError("a path inside the model folder, with forward slashes and without '..'")
    return str(pure)


InsidePath = Annotated[str, AfterValidator(_inside)]
"""A file of the model folder, or one that an export makes there."""

Name = Annotated[str, Field(pattern=NAME_PATTERN)]
"""Lower-case letters, digits and hyphens, no hyphen at either end."""
