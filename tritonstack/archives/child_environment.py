"""Variables that other people's code gets: those of this list alone, and no token but that of the hub, for exports.

A model's code, its exports and its graph run as the user who builds, and may be anybody's. A list of what is left out
would miss the next service's token.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

MORE_VARIABLE = "TRITONSTACK_EXPORT_VARIABLES"
"""Names, separated by commas, of further variables that export scripts get."""

_PLAIN = (
    "PATH", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "OMP_*", "MKL_*",
    "KMP_*", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "CUDA_HOME", "CUDA_CACHE_PATH",
    "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "TF_CPP_MIN_LOG_LEVEL", "TF_ENABLE_ONEDNN_OPTS",
)  # fmt: skip
"""Where programs and libraries lie, languages, threads, devices: nothing that opens anything."""

_OF_DOWNLOADS = (
    "HOME", "XDG_CACHE_HOME", "HF_*", "HUGGING_FACE_HUB_TOKEN", "TRANSFORMERS_*", "TORCH_HOME",
    "TRITONSTACK_HUB_FOLDER", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy",
    "https_proxy", "no_proxy", "all_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
)  # fmt: skip
"""What exports fetch pretrained weights with: docs/hub-weights.md."""


def child_environment(*, home: Path, downloads: bool) -> dict[str, str]:
    """The environment of a process that runs other people's code.

    Args:
        home: the process's HOME, a folder of its own, where it does not download: caches and settings of the user
            have tokens, too.
        downloads: whether it is an export, which may fetch weights and gets the hub's token for that.
    """
    given = dict(_allowed(os.environ, _PLAIN + (_OF_DOWNLOADS if downloads else ())))
    if downloads:
        named = [name.strip() for name in os.environ.get(MORE_VARIABLE, "").split(",")]
        given |= {name: os.environ[name] for name in named if name in os.environ}
    else:
        given["HOME"] = str(home.resolve())
    return given | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1", "PYTHONUNBUFFERED": "1"}


def _allowed(variables: Mapping[str, str], patterns: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for name, value in variables.items():
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            yield name, value
