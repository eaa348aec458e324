"""Protobuf's text format: what its reader takes and what it refuses."""

from __future__ import annotations

from tests.differential.bases import BATCHED, DOUBLE
from tests.differential.repository import Mutation, more, swap, write

_X = '{ name: "x" data_type: TYPE_FP32 dims: [ 4 ] }'
_CONFIG = "double/config.pbtxt"

TEXT = (
    Mutation(
        "comments", DOUBLE, (swap('name: "double"', '# a comment { [ "\nname: "double" # more'), more("# the end"))
    ),
    Mutation("comment-in-c-style", DOUBLE, more("// a comment"), "config", "Expected identifier"),
    Mutation("comment-at-the-end-without-newline", DOUBLE, swap("instance_group [ { kind: KIND_CPU } ]\n", "# end")),
    Mutation("single-quotes", DOUBLE, swap('"x"', "'x'")),
    Mutation(
        "quotes-that-differ", DOUBLE, swap('"x"', "\"x'"), "config", "String literals cannot cross line boundaries"
    ),
    Mutation("string-over-two-lines", DOUBLE, swap('"x"', '"x\ny"'), "config", "cannot cross line boundaries"),
    Mutation("strings-side-by-side", DOUBLE, swap('name: "double"', "name: \"dou\" 'ble'")),
    Mutation("escapes", DOUBLE, swap('name: "x"', 'name: "\\x78\\171\\t\\u0041"')),
    Mutation("escape-unknown", DOUBLE, swap('name: "x"', 'name: "\\q"'), "config", "Invalid escape sequence"),
    Mutation("escape-hexadecimal-empty", DOUBLE, swap('name: "x"', 'name: "\\xZZ"'), "config", "Expected hex digits"),
    Mutation("name-not-ascii", DOUBLE, swap('name: "x"', 'name: "ä"')),
    Mutation("bytes-that-are-no-text", DOUBLE, swap('name: "x"', 'name: "\\377"'), "config", "UTF-8"),
    Mutation("angle-brackets", DOUBLE, swap(_X, '< name: "x" data_type: TYPE_FP32 dims: [ 4 ] >')),
    Mutation("brackets-that-differ", DOUBLE, swap(_X, _X.replace("}", ">")), "config", "Expected"),
    Mutation("colon-before-message", DOUBLE, swap("input [", "input: [")),
    Mutation("colon-missing", DOUBLE, swap("max_batch_size: 8", "max_batch_size 8"), "config", 'Expected ":"'),
    Mutation("equals-sign", DOUBLE, swap("max_batch_size: 8", "max_batch_size = 8"), "config", "Expected"),
    Mutation("commas-between-fields", DOUBLE, swap(_X, '{ name: "x", data_type: TYPE_FP32; dims: [ 4 ], }')),
    Mutation("two-commas-between-fields", DOUBLE, swap(_X, '{ name: "x",, dims: [ 4 ] }'), "config", "Expected"),
    Mutation("semicolon-at-top", DOUBLE, swap("max_batch_size: 8", "max_batch_size: 8;")),
    Mutation("trailing-comma-in-list", DOUBLE, swap("[ 4 ]", "[ 4, ]"), "config", "Expected"),
    Mutation("comma-missing-in-list", DOUBLE, swap("[ 4 ]", "[ 4 4 ]"), "config", 'Expected ","'),
    Mutation("trailing-comma-in-list-of-messages", DOUBLE, swap(f"{_X} ]", f"{_X}, ]"), "config", "Expected"),
    Mutation(
        "comma-missing-between-messages",
        DOUBLE,
        swap(f"{_X} ]", f"{_X} {_X.replace('x', 'z')} ]"),
        "config",
        "Expected",
    ),
    Mutation("empty-list-of-messages", DOUBLE, more("model_warmup [ ]")),
    Mutation("list-for-one-message", DOUBLE, more("dynamic_batching [ { } ]"), "config", "Expected"),
    Mutation("list-for-one-scalar", DOUBLE, swap("8", "[ 8 ]"), "config", "Expected integer, got: ["),
    Mutation("brace-missing", DOUBLE, swap(_X, _X.removesuffix("}")), "config", "Expected"),
    Mutation("brace-too-many", DOUBLE, more("}"), "config", "Expected"),
    Mutation("scalar-twice", DOUBLE, more("max_batch_size: 4"), "config", 'Non-repeated field "max_batch_size"'),
    Mutation(
        "message-twice", DOUBLE, more("dynamic_batching { }\ndynamic_batching { }"), "config", "Non-repeated field"
    ),
    Mutation("name-twice-and-equal", DOUBLE, more('name: "double"'), "config", "Non-repeated field"),
    Mutation("two-of-a-oneof", BATCHED, more("sequence_batching { }"), "config", "oneof"),
    Mutation("unknown-field", DOUBLE, more("max_batch: 8"), "config", 'no field named "max_batch"'),
    Mutation(
        "unknown-field-in-message", DOUBLE, swap(_X, _X.replace("}", "shape: 4 }")), "config", 'no field named "shape"'
    ),
    Mutation("field-of-other-case", DOUBLE, more("Max_Batch_Size: 8"), "config", "no field named"),
    Mutation("field-in-camel-case", DOUBLE, swap("max_batch_size", "maxBatchSize"), "config", "no field named"),
    Mutation("field-by-number", DOUBLE, more("4: 8"), "config", "Expected identifier"),
    Mutation("message-for-scalar", DOUBLE, swap("max_batch_size: 8", "max_batch_size { }"), "config", "Expected"),
    Mutation("scalar-for-message", DOUBLE, more("dynamic_batching: true"), "config", "Expected"),
    Mutation("word-for-text", DOUBLE, swap('"python"', "python"), "config", "Expected string"),
    Mutation("number-for-text", DOUBLE, swap('"python"', "1"), "config", "Expected string"),
    Mutation(
        "number-touching-word",
        DOUBLE,
        swap("max_batch_size: 8\n", "max_batch_size: 8input: [ ]\n"),
        "config",
        "Need space between number and identifier",
    ),
    Mutation(
        "byte-order-mark", DOUBLE, swap('name: "double"', '\ufeffname: "double"'), "config", "Expected identifier"
    ),
    Mutation("line-ends-of-windows", DOUBLE, swap("\n", "\r\n", count=5)),
    Mutation("no-space-at-all", DOUBLE, swap('name: "double"\nbackend: "python"\n', 'name:"double"backend:"python"')),
    Mutation("number-with-plus", DOUBLE, swap("8", "+8"), "config", "Expected integer"),
    Mutation(
        "minus-with-space", BATCHED, swap("batch_size: 8", "batch_size: - 8"), "max-batch-size", "must be non-negative"
    ),
    Mutation("json", DOUBLE, write(_CONFIG, '{"name": "double", "backend": "python"}\n'), "config", "Expected"),
    Mutation("yaml", DOUBLE, write(_CONFIG, "name: double\nbackend: python\n"), "config", "Expected string"),
    Mutation("empty-configuration", DOUBLE, write(_CONFIG, "")),
    Mutation("configuration-of-a-comment", DOUBLE, write(_CONFIG, "# nothing\n")),
    Mutation("nul-byte", DOUBLE, more("\0"), "config", "Invalid control characters"),
    Mutation("extension-name", DOUBLE, more("[a.b]: 1"), "config", "a.b"),
    Mutation("reserved-field", DOUBLE, more("infinite: 1"), "config", "no field named"),
    Mutation("float-in-exponent-form", DOUBLE, swap("8", "8e0"), "config", "Expected integer"),
)
