"""Merges configurations with protobuf itself and Triton's own definitions, and says where ours differ.

    python protobuf_merge.py PATH_OF_model_config_pb2.py CASES.json

CASES: ``[{"base": text, "fragments": [text, …], "merged": text}, …]``. Runs in an environment with protobuf.
"""

import importlib.util
import json
import sys
from pathlib import Path

from google.protobuf import text_format

spec = importlib.util.spec_from_file_location("model_config_pb2", sys.argv[1])
definitions = importlib.util.module_from_spec(spec)
spec.loader.exec_module(definitions)


def read(text):
    return text_format.Parse(text, definitions.ModelConfig())


for case in json.loads(Path(sys.argv[2]).read_text()):
    expected = read(case["base"])
    for text in case["fragments"]:
        fragment = read(text)
        for field, _ in fragment.ListFields():
            entry = field.message_type
            if not (entry is not None and entry.GetOptions().map_entry):
                expected.ClearField(field.name)  # else MergeFrom would append, or merge into the message
        for field, value in fragment.ListFields():
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                for key in value:
                    target = getattr(expected, field.name)
                    if hasattr(value[key], "CopyFrom"):
                        target[key].CopyFrom(value[key])
                    else:
                        target[key] = value[key]
                fragment.ClearField(field.name)
        expected.MergeFrom(fragment)
    if read(case["merged"]) != expected:
        sys.exit(f"{case['fragments']}: protobuf gives\n{expected}\nand we\n{case['merged']}")
print("equal")
