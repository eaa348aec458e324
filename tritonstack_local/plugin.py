"""The functions that the package ``tritonstack`` uses of this one, found by the entry point ``tritonstack.local_aws``.

Other modules of this package are imported when they are used: building
and packing a model needs none of the local AWS, and the local AWS needs none of the proofs.
"""

from __future__ import annotations

import importlib
from typing import Any

from tritonstack.extensions import require_modules

require_modules("psutil")
_MODULES = {
    "find_local_aws": "aws",
    "require_local_aws": "aws",
    "answer_in_container": "container.proof",
    "running_processes": "processes",
    "left_regions": "leftovers",
    "left_environment_folders": "leftovers",
}


def __getattr__(name: str) -> Any:
    """A function of ``_MODULES``."""
    if name not in _MODULES:
        raise AttributeError(name)
    return getattr(importlib.import_module(f"tritonstack_local.{_MODULES[name]}"), name)
