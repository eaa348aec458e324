"""Merges configurations with protobuf itself and Triton's own definitions, and says where ours differ.

    python protobuf_merge.py PATH_OF_model_config_pb2.py CASES.json

CASES: ``[{"base": text, "fragments": [text, …], "merged": text}, …]``. Runs in an environment with protobuf.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

from google.protobuf import text_format  # type: ignore[import-untyped, import-not-found, unused-ignore]  # elsewhere


def definitions(path: str) -> Any:
    """Triton's messages, out of tritonclient's module, which imports nothing but protobuf."""
    spec = importlib.util.spec_from_file_location("model_config_pb2", path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def is_map(field: Any) -> bool:
    """Whether a field is a map."""
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def merge(base: Any, fragment: Any) -> None:
    """Merge a fragment over a message: protobuf's own merge, which would add to lists and messages."""
    for field, value in fragment.ListFields():
        target = getattr(base, field.name)
        if not is_map(field):
            base.ClearField(field.name)
            continue
        for key in value:
            if hasattr(value[key], "CopyFrom"):
                target[key].CopyFrom(value[key])
            else:
                target[key] = value[key]
        fragment.ClearField(field.name)
    base.MergeFrom(fragment)


def main(module: str, file: str) -> int:
    """Compare every case."""
    message = definitions(module).ModelConfig
    for case in json.loads(Path(file).read_text()):
        expected = text_format.Parse(case["base"], message())
        for text in case["fragments"]:
            merge(expected, text_format.Parse(text, message()))
        if text_format.Parse(case["merged"], message()) != expected:
            print(f"{case['fragments']}: protobuf gives\n{expected}\nand we\n{case['merged']}")
            return 1
    print("equal")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
