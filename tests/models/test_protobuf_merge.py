"""Our merge of configurations against protobuf's, with Triton's own definitions of the messages."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import tritonclient

from tritonstack.models.config_merge import ConfigFile, merge_configs
from tritonstack.models.programs import REPOSITORY, environment_python

DEFINITIONS = Path(tritonclient.__path__[0]) / "grpc" / "model_config_pb2.py"
FRAGMENTS = [
    "max_batch_size: 4",
    "name: 'other \\303\\244 \\\"quoted\\\"'",
    "dynamic_batching { max_queue_delay_microseconds: 7 preferred_batch_size: [ 2, 4 ] }",
    "sequence_batching { max_sequence_idle_microseconds: 5 }",
    "instance_group [ { count: 2 kind: KIND_GPU gpus: [ 0 ] }, { count: 1 kind: KIND_CPU } ]",
    "parameters { key: 'a' value { string_value: 'new' } } parameters { key: 'b' value { string_value: '' } }",
    "optimization { graph { level: -1 } execution_accelerators { gpu_execution_accelerator { name: 'tensorrt' } } }",
    "platform: 'tensorrt_plan' metric_tags { key: 'x' value: '1' } cc_model_filenames: { key: '8.0' value: 'm' }",
    "version_policy { specific { versions: [ 1, 3 ] } } input [ { name: 'i' data_type: TYPE_FP32 dims: [ -1 ] } ]",
]


def test_merging_is_what_protobuf_makes_of_it(tmp_path: Path) -> None:
    cases = []
    for config in sorted((REPOSITORY / "model_repos").glob("*/*/config.pbtxt")):
        base = ConfigFile(file=str(config), text=config.read_text())
        for number in range(len(FRAGMENTS)):
            fragments = [FRAGMENTS[number], FRAGMENTS[(number * 2 + 3) % len(FRAGMENTS)]]
            merged = merge_configs(base, [ConfigFile(file="f", text=text) for text in fragments])
            cases.append({"base": base.text, "fragments": fragments, "merged": merged})
    assert len(cases) > len(FRAGMENTS)
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    program = Path(__file__).with_name("protobuf_merge.py")
    command = [environment_python("exporters"), program, DEFINITIONS, tmp_path / "cases.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "equal\n", "")
