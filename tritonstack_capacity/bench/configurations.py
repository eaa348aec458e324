"""From the names of configurations to the archives that are them: overlays of one model folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tritonstack.archives.recipe import Recipe, read_recipe
from tritonstack.errors import InputError, Problem

WORDS: dict[str, frozenset[str]] = {
    "plain": frozenset(),
    "dynamic-batching": frozenset({"dynamic-batching"}),
    "two-instances": frozenset({"two-instances"}),
    "both": frozenset({"dynamic-batching", "two-instances"}),
}
"""The published load test's four configurations: word → fragments of ``config.pbtxt`` that an overlay adds, by their
files' names. An overlay's other fragments (``tensorrt.pbtxt``: what makes it run elsewhere) do not count."""
_FRAGMENTS = frozenset().union(*WORDS.values())


def configured_names(name: str, configurations: Sequence[str], *, model_repos: Path) -> dict[str, str]:
    """Configuration → the model's name for it, in the order asked for.

    Args:
        name: ``[endpoint/]folder``.
        configurations: names of overlays, or the words of ``WORDS``, which stand for every overlay that is so
            configured (``dynamic-batching`` is ``pytorch-db`` and ``tensorrt-db`` of ``bert-large``).
        model_repos: where the folder lies.

    Raises:
        InputError: no such folder, a folder without overlays, or words that name none of them; all at once.
    """
    endpoint, slash, folder = name.rpartition("/")
    if not (model_repos / folder / "recipe.yaml").is_file():
        found = f"--configurations, and no folder {folder} in {model_repos}"
        raise InputError([Problem(field=name, found=found, allowed="a model folder whose recipe has overlays")])
    recipe = read_recipe(model_repos / folder)
    if not recipe.overlays:
        raise InputError([Problem(field=name, found="a recipe without overlays", allowed="one with overlays")])
    found_names: dict[str, str] = {}
    problems = []
    for word in configurations:
        overlays = [word] if word in recipe.overlays else _meant(recipe, word)
        found_names |= {overlay: f"{endpoint}{slash}{folder}-{overlay}" for overlay in overlays}
        if not overlays:
            allowed = f"{', '.join(recipe.overlays)}; or {', '.join(WORDS)}, where an overlay is that"
            problems.append(Problem(field="--configurations", found=f"{word}, which {folder} has not", allowed=allowed))
    if problems:
        raise InputError(problems)
    return found_names


def _meant(recipe: Recipe, word: str) -> list[str]:
    wanted = WORDS.get(word)
    if wanted is None:
        return []
    stems = {name: frozenset(Path(file).stem for file in one.config) for name, one in recipe.overlays.items()}
    return [name for name, found in stems.items() if found & _FRAGMENTS == wanted]
