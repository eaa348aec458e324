"""Models of transformers with pretrained or random weights."""

# mypy: disable-error-code="import-not-found"
# PyTorch and transformers are in the environment that exports run in, not in the one that checks types.

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from _exporters import hub
from _exporters.script import ExportError, Options, say

FILES = ("config.json", "model.safetensors")
_OF_TRAINING_ALONE = ".num_batches_tracked"
"""A batch normalisation's counter, which older files lack and inference does not read."""


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A model, and the files that it was loaded from.

    Attributes:
        model: FP32, in evaluation mode.
        folder: of the pretrained files; None for random weights.
        inputs: file → its SHA-256, for the report.
    """

    model: Any
    folder: Path | None
    inputs: Mapping[str, str]


def load(
    architecture: Any,
    options: Options,
    *,
    defaults: Mapping[str, Any],
    files: Sequence[str] = FILES,
    arguments: Mapping[str, Any] | None = None,
    untrained: str | None = None,
    **settings: Any,
) -> Loaded:
    """Make a model with the weights and the size that the options name.

    Args:
        architecture: a model class of transformers.
        options: size, weights, seed and source.
        defaults: the model configuration of the full size, for random weights; ``options.size`` changes it.
        files: to read of the pretrained model's repository, with :data:`FILES`.
        arguments: of the class, such as ``add_pooling_layer``.
        untrained: the beginning of names of weights that the pretrained files may lack, such as ``classifier.``: those
            stay random, and the build prints so.
        settings: further fields of the model's configuration, such as ``attn_implementation`` and ``num_labels``.

    Raises:
        ExportError: files are missing, damaged, or do not fit the architecture: the message names the weights.
    """
    torch.manual_seed(options.seed)
    if options.weights == "random":
        config = architecture.config_class(**{**defaults, **options.size}, **settings)
        say(f"random weights of seed {options.seed}")
        model = architecture(config, **(arguments or {}))
        return Loaded(model=model.float().eval(), folder=None, inputs={})
    wanted = tuple(dict.fromkeys((*FILES, *files)))
    folder = hub.fetch(options.source, wanted)
    model = _pretrained(
        architecture, folder, options=options, settings=settings, arguments=arguments or {}, untrained=untrained
    )
    return Loaded(model=model, folder=folder, inputs=hub.digests(folder, wanted))


def _pretrained(
    architecture: Any,
    folder: Path,
    *,
    options: Options,
    settings: Mapping[str, Any],
    arguments: Mapping[str, Any],
    untrained: str | None,
) -> Any:
    try:
        config = architecture.config_class.from_pretrained(folder, local_files_only=True, **settings)
        _check_size(config, options)
        model, found = architecture.from_pretrained(
            folder,
            config=config,
            local_files_only=True,
            use_safetensors=True,
            dtype=torch.float32,
            output_loading_info=True,
            **arguments,
        )
    except (SafetensorError, OSError, RuntimeError, ValueError) as error:
        raise ExportError(f"the pretrained files in {folder} cannot be read: {error}") from error
    lacking = sorted(name for name in found["missing_keys"] if not name.endswith(_OF_TRAINING_ALONE))
    drawn = [name for name in lacking if untrained is not None and name.startswith(untrained)]
    if drawn:
        say(f"{', '.join(drawn)}: not in the pretrained files, random weights of seed {options.seed}")
    missing = [name for name in lacking if name not in drawn]
    if missing:
        raise ExportError(
            f"{folder / 'model.safetensors'} lacks {len(missing)} weights of {architecture.__name__}, which would stay "
            f"random: {', '.join(missing[:8])}{', …' if len(missing) > 8 else ''}"
        )
    return model.eval()


def _check_size(config: Any, options: Options) -> None:
    """Raise ExportError where the build chose another size than the pretrained weights have."""
    other = [
        f"{name} is {getattr(config, name, None)}, not {value}"
        for name, value in options.size.items()
        if getattr(config, name, None) != value
    ]
    if other:
        raise ExportError(f"pretrained weights have their own size (build with --size full): {'; '.join(other)}")
