"""Archives that model folders stand for: overlays, copies, size and weights; what each is built from."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tritonstack.errors import Problem, refuse
from tritonstack.models.model_config import ConfigFile, merge_configs, with_name
from tritonstack.models.recipe import RECIPE, Recipe, Size, Weights, read_recipe
from tritonstack.models.source_files import CONFIG, files_below, model_directories
from tritonstack.untrusted.folder_files import text_inside


@dataclass(frozen=True, kw_only=True)
class BuildChoice:
    """How large models are made, and whose weights they get."""

    size: Size = "full"
    weights: Weights = "pretrained"


@dataclass(frozen=True, kw_only=True)
class OwnModel:
    """A Triton model of the folder: its directory's name in the archive, its directory in the folder, its config."""

    name: str
    directory: Path
    config: str


@dataclass(frozen=True, kw_only=True)
class ArchiveSource:
    name: str  # the archive's name: the folder's, ``<folder>-<overlay>`` or ``<folder>-<copy>``
    folder: Path  # the model folder
    overlay: str | None = None  # the overlay's name, or None
    copy: int | None = None  # the copy's number, or None where the folder has no copies
    # size and weights; they matter only where the recipe makes a difference between them
    choice: BuildChoice = field(default_factory=BuildChoice)
    # the folder's recipe as it is written, where it was read already
    written: Recipe | None = field(default=None, repr=False, compare=False)

    @cached_property
    def _written(self) -> Recipe:
        return self.written or read_recipe(self.folder)

    @cached_property
    def recipe(self) -> Recipe:
        """The effective recipe: the overlay's fields in place, the model called like the copy; no overlays left.

        Raises :class:`InputError` where the recipe is wrong.
        """
        written = self._written
        changes: dict[str, Any] = {"overlays": {}, "copies": 1}
        if self.overlay is not None:
            changes |= written.overlays[self.overlay].changes()
        if self.copy is not None:
            changes["model"] = self.name
        return written.model_copy(update=changes)

    @cached_property
    def fragments(self) -> tuple[str, ...]:
        """The configuration fragments of the overlay, by their names in the folder."""
        return self._written.overlays[self.overlay].config if self.overlay else ()

    @cached_property
    def other_fragments(self) -> frozenset[str]:
        """Fragments that only other overlays use: no source of this archive."""
        overlays = self._written.overlays.values()
        return frozenset(name for overlay in overlays for name in overlay.config) - frozenset(self.fragments)

    @cached_property
    def produced(self) -> frozenset[str]:
        """Every file that an export of the folder makes, of whichever overlay: none is a source."""
        return self._written.produced

    @property
    def directory(self) -> str:
        """The addressed model's directory in the folder."""
        return self._written.model or self.folder.name

    @property
    def model(self) -> str:
        """The addressed model's directory in the archive."""
        return self.recipe.model or self.folder.name

    @property
    def size(self) -> dict[str, Any]:
        """Changes by the chosen size to the source framework's model configuration."""
        return getattr(self.recipe.sizes, self.choice.size)  # type: ignore[no-any-return]  # one of its two fields

    @property
    def weights(self) -> Weights:
        """The weights that exports use; random where the recipe has no source."""
        return self.choice.weights if self.recipe.source is not None else "random"

    @cached_property
    def used(self) -> tuple[ArchiveSource, ...]:
        """The folders that this one uses, as they are and in the same size."""
        names = dict.fromkeys(used.folder for used in self.recipe.uses)
        return tuple(ArchiveSource(name=name, folder=self.folder.parent / name, choice=self.choice) for name in names)

    def files(self) -> dict[str, Path]:
        """The source files of the folder: name → path, without the recipe, which counts by its content."""
        left_out = self.produced | self.other_fragments | {RECIPE}
        return {name: path for name, path in files_below(self.folder) if name not in left_out}

    @cached_property
    def own_models(self) -> tuple[OwnModel, ...]:
        """The folder's models as the archive has them, with the overlay's and the copy's changes to the addressed one.

        Raises :class:`InputError` where a fragment is missing or a configuration cannot be merged.
        """
        return tuple(self._own(directory) for directory in model_directories(self.folder))

    def _own(self, directory: Path) -> OwnModel:
        config = ConfigFile(file=str(directory / CONFIG), text=text_inside(directory / CONFIG, self.folder))
        if directory.name != self.directory:
            return OwnModel(name=directory.name, directory=directory, config=config.text)
        text = merge_configs(config, self._read_fragments())
        if self.copy is not None:
            text = with_name(ConfigFile(file=config.file, text=text), self.name)
        return OwnModel(name=self.model, directory=directory, config=text)

    def _read_fragments(self) -> list[ConfigFile]:
        found: list[ConfigFile] = []
        problems: list[Problem] = []
        for index, name in enumerate(self.fragments):
            path = self.folder / name
            try:
                found.append(ConfigFile(file=str(path), text=text_inside(path, self.folder)))
            except OSError as error:
                place = f"overlays.{self.overlay}.config[{index}]"
                reason = f"{name}: {error.strerror or error}"
                allowed = "a fragment of config.pbtxt in the model folder"
                problems.append(Problem(file=str(self.folder / RECIPE), field=place, found=reason, allowed=allowed))
        refuse(problems)
        return found


def archives_of(folder: Path, choice: BuildChoice | None = None) -> tuple[ArchiveSource, ...]:
    """The archives that a model folder stands for: its overlays (and itself: `base_archive`), copies, or itself alone.

    Raises :class:`InputError` where the recipe is wrong.
    """
    choice = choice or BuildChoice()
    recipe = read_recipe(folder)
    name = folder.resolve().name

    def source(suffix: str, *, overlay: str | None = None, copy: int | None = None) -> ArchiveSource:
        return ArchiveSource(
            name=f"{name}{suffix}", folder=folder, overlay=overlay, copy=copy, choice=choice, written=recipe
        )

    if recipe.overlays:
        base = (source(""),) if recipe.base_archive else ()
        return (*base, *(source(f"-{overlay}", overlay=overlay) for overlay in recipe.overlays))
    if recipe.copies > 1:
        return tuple(source(f"-{copy}", copy=copy) for copy in range(recipe.copies))
    return (source(""),)
