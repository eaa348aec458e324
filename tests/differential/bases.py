"""Sound repositories of Python models and of ensembles of them; nothing else of Triton is in the local server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MODEL = """\
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.factor = 2

    def execute(self, requests):
        inputs = [request.inputs()[0].as_numpy() for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", self.factor * x)]) for x in inputs]
"""


@dataclass(frozen=True, kw_only=True)
class Base:
    """A sound repository; requests reach ``model``, and its configuration is what changes are made to."""

    model: str
    files: Mapping[str, str]


def python_config(name: str, *, more: str = "") -> str:
    """A configuration with one input x and one output y."""
    return f"""\
name: "{name}"
backend: "python"
max_batch_size: 8
input [ {{ name: "x" data_type: TYPE_FP32 dims: [ 4 ] }} ]
output [ {{ name: "y" data_type: TYPE_FP32 dims: [ 4 ] }} ]
instance_group [ {{ kind: KIND_CPU }} ]
{more}"""


DOUBLE = Base(
    model="double",
    files={"double/config.pbtxt": python_config("double"), "double/1/model.py": MODEL},
)

CHAIN = Base(
    model="chain",
    files={
        "chain/config.pbtxt": """\
name: "chain"
platform: "ensemble"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
ensemble_scheduling {
  step [
    { model_name: "one" model_version: -1
      input_map { key: "x" value: "x" } output_map { key: "y" value: "between" } },
    { model_name: "two" model_version: -1
      input_map { key: "x" value: "between" } output_map { key: "y" value: "y" } }
  ]
}
""",
        "chain/1/": "",
        "one/config.pbtxt": python_config("one"),
        "one/1/model.py": MODEL,
        "two/config.pbtxt": python_config("two"),
        "two/1/model.py": MODEL,
    },
)

BRANCHES = Base(
    model="branches",
    files={
        "branches/config.pbtxt": """\
name: "branches"
platform: "ensemble"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [
  { name: "y" data_type: TYPE_FP32 dims: [ 4 ] },
  { name: "side" data_type: TYPE_FP32 dims: [ 4 ] }
]
ensemble_scheduling {
  step [
    { model_name: "join" model_version: -1
      input_map { key: "a" value: "left" } input_map { key: "b" value: "side" }
      output_map { key: "y" value: "y" } },
    { model_name: "one" model_version: -1
      input_map { key: "x" value: "x" } output_map { key: "y" value: "left" } },
    { model_name: "one" model_version: 1
      input_map { key: "x" value: "x" } output_map { key: "y" value: "side" } }
  ]
}
""",
        "branches/1/": "",
        "one/config.pbtxt": python_config("one"),
        "one/1/model.py": MODEL,
        "join/config.pbtxt": """\
name: "join"
backend: "python"
max_batch_size: 8
input [
  { name: "a" data_type: TYPE_FP32 dims: [ 4 ] },
  { name: "b" data_type: TYPE_FP32 dims: [ -1 ] },
  { name: "weight" data_type: TYPE_FP32 dims: [ 1 ] optional: true }
]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] }, { name: "debug" data_type: TYPE_STRING dims: [ 1 ] } ]
""",
        "join/1/model.py": MODEL,
    },
)

RESHAPED = Base(
    model="reshaped",
    files={
        "reshaped/config.pbtxt": """\
name: "reshaped"
backend: "python"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ] } } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4, 3 ] reshape { shape: [ 2, 6 ] } } ]
""",
        "reshaped/1/model.py": MODEL,
    },
)

VERSIONS = Base(
    model="versions",
    files={
        "versions/config.pbtxt": python_config("versions", more="version_policy { specific { versions: [ 1, 3 ] } }\n"),
        **{f"versions/{number}/model.py": MODEL for number in (1, 2, 3)},
    },
)

BATCHED = Base(
    model="batched",
    files={
        "batched/config.pbtxt": """\
name: "batched"
backend: "python"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] label_filename: "labels.txt" } ]
instance_group [ { name: "workers" kind: KIND_CPU count: 2 } ]
dynamic_batching {
  preferred_batch_size: [ 4, 8 ]
  max_queue_delay_microseconds: 100
  preserve_ordering: false
  priority_levels: 2
  default_priority_level: 1
  default_queue_policy { timeout_action: REJECT default_timeout_microseconds: 1000 max_queue_size: 10 }
  priority_queue_policy { key: 2 value { timeout_action: DELAY default_timeout_microseconds: 1000 } }
}
model_warmup [
  { name: "zeros" batch_size: 1
    inputs { key: "x" value { data_type: TYPE_FP32 dims: [ 4 ] zero_data: true } } }
]
parameters [ { key: "threshold" value { string_value: "0.5" } } ]
response_cache { enable: false }
model_transaction_policy { decoupled: false }
version_policy { latest { num_versions: 1 } }
""",
        "batched/1/model.py": MODEL,
        "batched/labels.txt": "cat\ndog\nbird\nfish\n",
    },
)

SEQUENCE = Base(
    model="sequence",
    files={
        "sequence/config.pbtxt": python_config(
            "sequence",
            more="""\
sequence_batching {
  max_sequence_idle_microseconds: 5000000
  direct { max_queue_delay_microseconds: 100 minimum_slot_utilization: 0.5 }
  control_input [
    { name: "START" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] },
    { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } ] },
    { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }
  ]
  state [ { input_name: "IN_STATE" output_name: "OUT_STATE" data_type: TYPE_INT32 dims: [ 4 ] } ]
}
""",
        ),
        "sequence/1/model.py": MODEL,
    },
)

RAGGED = Base(
    model="ragged",
    files={
        "ragged/config.pbtxt": """\
name: "ragged"
backend: "python"
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] allow_ragged_batch: true } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
batch_input [
  { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "INDEX" data_type: TYPE_FP32 source_input: "x" }
]
batch_output [ { target_name: "y" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "x" } ]
dynamic_batching { }
""",
        "ragged/1/model.py": MODEL,
    },
)

OPTIONAL = Base(
    model="optional",
    files={
        "optional/config.pbtxt": """\
name: "optional"
backend: "python"
max_batch_size: 8
input [
  { name: "x" data_type: TYPE_FP32 dims: [ 4 ] },
  { name: "seed" data_type: TYPE_INT64 dims: [ 1 ] optional: true }
]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
""",
        "optional/1/model.py": MODEL,
    },
)

_ALL = (DOUBLE, CHAIN, BRANCHES, RESHAPED, VERSIONS, BATCHED, SEQUENCE, RAGGED, OPTIONAL)
BASES = {base.model: base for base in _ALL}
