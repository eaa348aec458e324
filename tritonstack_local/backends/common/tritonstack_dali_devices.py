"""A serialised DALI pipeline with every operator on the CPU.

A pipeline states for each operator, input and output where it runs: ``cpu``, ``gpu`` or ``mixed``. The message is
rewritten in protobuf's wire format, since DALI ships no Python classes for it.
Source of the field numbers: ``dali/pipeline/dali.proto`` as DALI 2.4.0 writes it (read off serialised pipelines).
"""

PIPELINE_OPERATOR, PIPELINE_OUTPUT, PIPELINE_DEVICE_ID = 5, 7, 8
OPERATOR_INPUT, OPERATOR_OUTPUT, OPERATOR_ARGUMENT, OPERATOR_NAME = 2, 3, 4, 5
PLACE_DEVICE = 2
ARGUMENT_NAME, ARGUMENT_STRINGS = 1, 5
CPU_ONLY_DEVICE_ID = -99999  # nvidia.dali.types.CPU_ONLY_DEVICE_ID
VARINT_WIRE_TYPE, BYTES_WIRE_TYPE = 0, 2


def on_cpu(pipeline):
    """The serialised pipeline with ``gpu`` and ``mixed`` as ``cpu``; the same bytes where nothing is on a GPU.

    Raises ValueError: the bytes are no protobuf message.
    """
    changes = {
        PIPELINE_OPERATOR: _operator_on_cpu,
        PIPELINE_OUTPUT: _place_on_cpu,
        PIPELINE_DEVICE_ID: lambda _: _varint(CPU_ONLY_DEVICE_ID % 2**64),
    }
    return _rewritten(pipeline, changes)


def operator_names(pipeline):
    """The names of a serialised pipeline's operators; an input's name is that of its ``external_source``."""
    names = []
    for number, _, value in _fields(pipeline):
        if number == PIPELINE_OPERATOR:
            names += [inner.decode() for field, _, inner in _fields(value) if field == OPERATOR_NAME]
    return names


def _operator_on_cpu(operator):
    return _rewritten(
        operator,
        {OPERATOR_INPUT: _place_on_cpu, OPERATOR_OUTPUT: _place_on_cpu, OPERATOR_ARGUMENT: _argument_on_cpu},
    )


def _place_on_cpu(place):
    return _rewritten(place, {PLACE_DEVICE: _device_on_cpu})


def _argument_on_cpu(argument):
    named = [value for number, _, value in _fields(argument) if number == ARGUMENT_NAME]
    return _rewritten(argument, {ARGUMENT_STRINGS: _device_on_cpu}) if named == [b"device"] else argument


def _device_on_cpu(device):
    return b"cpu" if device in (b"gpu", b"mixed") else device


def _rewritten(message, changes):
    """The message with the values of some fields changed: field number → bytes to bytes."""
    out = bytearray()
    for number, wire_type, value in _fields(message):
        changed = changes.get(number, bytes)(value)
        out += _varint(number << 3 | wire_type)
        if wire_type == BYTES_WIRE_TYPE:
            out += _varint(len(changed))
        out += changed
    return bytes(out)


def _fields(message):
    """(field number, wire type, value's bytes) for each field; a length-delimited value without its length."""
    at = 0
    while at < len(message):
        key, at = _read_varint(message, at)
        number, wire_type = key >> 3, key & 7
        if wire_type == VARINT_WIRE_TYPE:
            _, end = _read_varint(message, at)
        elif wire_type in (1, 5):
            end = at + (8 if wire_type == 1 else 4)
        elif wire_type == BYTES_WIRE_TYPE:
            length, at = _read_varint(message, at)
            end = at + length
        else:
            raise ValueError("not a serialised DALI pipeline")
        if end > len(message):
            raise ValueError("not a serialised DALI pipeline, or not all of it")
        yield number, wire_type, message[at:end]
        at = end


def _read_varint(message, at):
    value = shift = 0
    while True:
        if at >= len(message) or shift > 63:
            raise ValueError("not a serialised DALI pipeline")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
