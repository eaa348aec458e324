"""What the manifest of a built archive tells: sizes, and how Triton batches and instantiates the model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tritonstack.archives.model_config import ModelConfig, read_config
from tritonstack_capacity.simulation.scenario import MIB

MICROSECONDS = 1000
"""Of a millisecond."""


def read_archive_facts(manifest: Path) -> dict[str, float] | str:
    """The facts in a manifest that ``tritonstack build`` wrote (see ``archive_facts``), or why there are none."""
    try:
        return archive_facts(json.loads(manifest.read_text(encoding="utf-8")))
    except OSError as error:
        return error.strerror or "unreadable"
    except (ValueError, KeyError, TypeError, AttributeError):
        return "no manifest of an archive"


def archive_facts(manifest: Mapping[str, Any]) -> dict[str, float]:
    """Fields of a scenario's group: ``disk_mib``, ``download_mib``, and what the configuration says.

    Raises:
        ValueError, KeyError, TypeError, AttributeError: it is no manifest.
    """
    archive = manifest["archive"]
    sizes = {"download_mib": archive["bytes"], "disk_mib": archive["tar_bytes"]}
    if not all(isinstance(size, int) and size > 0 for size in sizes.values()):
        raise ValueError("an archive without a size")
    facts = {name: size / MIB for name, size in sizes.items()}
    config = manifest.get("configs", {}).get(manifest.get("model", {}).get("name"))
    return facts if config is None else facts | _of_config(read_config(config))


def _of_config(config: ModelConfig) -> dict[str, float]:
    """Dynamic batching and instances. Of an ensemble nothing: its steps have their own."""
    if config.is_ensemble:
        return {}
    groups = config.node.nodes("instance_group")
    found: dict[str, float] = {"instances": max(1, sum(max(1, group.integer("count")) for group in groups))}
    batching = config.node.node("dynamic_batching")
    if batching is not None and config.max_batch_size > 1:
        found["max_batch"] = config.max_batch_size
        found["max_queue_delay_ms"] = batching.integer("max_queue_delay_microseconds") / MICROSECONDS
    return found
