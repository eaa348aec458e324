"""A serialised DALI pipeline with every operator on the CPU.

A pipeline states for each operator, input and output where it runs: ``cpu``, ``gpu`` or ``mixed``. DALI ships no Python
classes for its message, so that those fields are described here; protobuf keeps all others as they are.
Source of the field numbers: ``dali/pipeline/dali.proto`` as DALI 2.4.0 writes it (read off serialised pipelines).
"""

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

CPU_ONLY_DEVICE_ID = -99999  # nvidia.dali.types.CPU_ONLY_DEVICE_ID
FIELDS = {
    "Place": {"device": (2, "")},
    "Argument": {"name": (1, ""), "strings": (5, "")},
    "Operator": {"input": (2, "Place"), "output": (3, "Place"), "argument": (4, "Argument"), "name": (5, "")},
    "Pipeline": {"operator": (5, "Operator"), "output": (7, "Place")},
}
"""Message → field → its number, and of which message it is, else of bytes. Each may be there several times."""


def _pipeline_class():
    file = descriptor_pb2.FileDescriptorProto(name="tritonstack_dali.proto", package="tritonstack", syntax="proto2")
    kinds = descriptor_pb2.FieldDescriptorProto
    for message, fields in FIELDS.items():
        described = file.message_type.add(name=message)
        for name, (number, of) in fields.items():
            field = described.field.add(name=name, number=number, label=kinds.LABEL_REPEATED, type=kinds.TYPE_BYTES)
            if of:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".tritonstack.{of}"
    described.field.add(name="device_id", number=8, label=kinds.LABEL_OPTIONAL, type=kinds.TYPE_INT64)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tritonstack.Pipeline"))


Pipeline = _pipeline_class()


def on_cpu(pipeline):
    """The serialised pipeline with ``gpu`` and ``mixed`` as ``cpu``; the same bytes where nothing is on a GPU.

    Raises ValueError: the bytes are no protobuf message.
    """
    before, after = _read(pipeline), _read(pipeline)
    operators = after.operator
    places = [*after.output, *(place for one in operators for place in (*one.input, *one.output))]
    named = [argument for one in operators for argument in one.argument if list(argument.name) == [b"device"]]
    for devices in (*(place.device for place in places), *(argument.strings for argument in named)):
        devices[:] = [b"cpu" if device in (b"gpu", b"mixed") else device for device in devices]
    if after.HasField("device_id"):
        after.device_id = CPU_ONLY_DEVICE_ID
    return pipeline if after == before else after.SerializeToString()


def operator_names(pipeline):
    """The names of a serialised pipeline's operators; an input's name is that of its ``external_source``."""
    return [name.decode() for one in _read(pipeline).operator for name in one.name]


def _read(pipeline):
    try:
        return Pipeline.FromString(pipeline)
    except DecodeError as error:
        raise ValueError(f"not a serialised DALI pipeline, or not all of it: {error}") from error
