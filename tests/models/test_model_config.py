"""config.pbtxt against Triton's message definitions."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import tritonclient

from tritonstack.models import model_config
from tritonstack.models.model_config import read_config
from tritonstack.models.programs import environment_python


@pytest.mark.parametrize(
    ("text", "line", "path", "found"),
    [
        ('name: "a"\nbatch_size: 1', 2, "batch_size", "an unknown field batch_size"),
        ('name: "a"\nname: "b"', 2, "name", "the field a second time"),
        ('name: [ "a" ]', 1, "name", "a list"),
        ("name: a", 1, "name", "a"),
        ('max_batch_size: "8"', 1, "max_batch_size", '"8"'),
        ("max_batch_size: 2147483648", 1, "max_batch_size", "2147483648"),
        ("max_batch_size: 1.0", 1, "max_batch_size", "1.0"),
        ("input { data_type: TYPE_FLOAT }", 1, "input.data_type", "TYPE_FLOAT"),
        ("input { is_shape_tensor: 2 }", 1, "input.is_shape_tensor", "2"),
        ("input: 1", 1, "input", "a value"),
        ("name { }", 1, "name", "a message"),
        (
            "dynamic_batching {}\nsequence_batching {}",
            2,
            "sequence_batching",
            "sequence_batching beside dynamic_batching",
        ),
        (
            "dynamic_batching { max_queue_delay_microseconds: -1 }",
            1,
            "dynamic_batching.max_queue_delay_microseconds",
            "-1",
        ),
        ("input [ {", 1, "", "the message opened on line 1 is not closed with '}'"),
    ],
)
def test_what_contradicts_the_definitions_is_named_with_line_and_field(
    text: str, line: int, path: str, found: str
) -> None:
    complaints = read_config(text).complaints
    assert [(c.line, c.path, c.found) for c in complaints] == [(line, path, found)]


def test_every_contradiction_is_named_at_once() -> None:
    assert len(read_config("a: 1\nb: 2\nname: 3\nmax_batch_size: true").complaints) == 4


def test_values_are_read_as_protobuf_reads_them() -> None:
    config = read_config(
        """
        name: "m" platform: "onnxruntime_onnx" max_batch_size: 0x10
        input { name: "x" data_type: TYPE_STRING dims: [ -1, 3 ] optional: t }
        output { name: "y" data_type: 11 dims: 4 dims: 5 reshape { shape: [ 20 ] } }
        """
    )
    assert config.complaints == ()
    assert (config.backend, config.max_batch_size, config.model_file) == ("onnxruntime", 16, "model.onnx")
    (x,), (y,) = config.inputs, config.outputs
    assert (x.data_type, x.dims, x.optional, x.shape(16)) == ("BYTES", (-1, 3), True, (-1, -1, 3))
    assert (y.data_type, y.dims, y.reshape, y.shape(0)) == ("FP32", (4, 5), (20,), (4, 5))


_DESCRIPTOR = r"""
import ast, json, re, sys
from google.protobuf import descriptor_pb2
source = open(sys.argv[1]).read()
content = ast.literal_eval(re.search(r"AddSerializedFile\(\s*(b'(?:[^'\\]|\\.)*')", source, re.S)[1])
file = descriptor_pb2.FileDescriptorProto.FromString(content)
found = {"messages": {}, "enums": {}}
def enums(listed, prefix):
    for item in listed:
        assert [value.number for value in item.value] == list(range(len(item.value))), item.name
        found["enums"][prefix + item.name] = [value.name for value in item.value]
def messages(listed, prefix):
    for item in listed:
        found["messages"][prefix + item.name] = sorted([f.name, f.label == 3] for f in item.field)
        enums(item.enum_type, prefix + item.name + ".")
        messages(item.nested_type, prefix + item.name + ".")
enums(file.enum_type, "")
messages(file.message_type, "")
print(json.dumps(found))
"""


def test_the_definitions_are_those_that_tritonclient_carries() -> None:
    source = Path(tritonclient.__path__[0]) / "grpc" / "model_config_pb2.py"
    done = subprocess.run(
        [str(environment_python("exporters")), "-c", _DESCRIPTOR, str(source)],
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = json.loads(done.stdout)
    messages, enums = model_config._definitions()
    assert {
        name: sorted([field, spec.repeated] for field, spec in fields.items()) for name, fields in messages.items()
    } == (theirs["messages"])
    assert {name: list(values) for name, values in enums.items()} == theirs["enums"]
