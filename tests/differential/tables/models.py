"""The model as a whole: name, backend, platform, parameters and other single fields."""

from __future__ import annotations

from tests.differential.bases import BATCHED, DOUBLE
from tests.differential.repository import Mutation, drop, more, move, swap, write

_BACKEND = 'backend: "python"'
_CACHE = "response_cache { enable: true }"
_DECOUPLED = "model_transaction_policy { decoupled: true }"

MODELS = (
    Mutation("name-left-out", DOUBLE, swap('name: "double"\n', "")),
    Mutation("name-empty", DOUBLE, swap('"double"', '""')),
    Mutation(
        "name-of-other-characters",
        DOUBLE,
        (move("double", "döuble-1.2"), swap('"double"', '"döuble-1.2"', file="döuble-1.2/config.pbtxt")),
        "directory-name",
        "'ascii' codec can't encode",
    ),
    Mutation("backend-left-out-with-model-py", DOUBLE, swap(f"{_BACKEND}\n", "")),
    Mutation("backend-empty-with-model-py", DOUBLE, swap(_BACKEND, 'backend: ""')),
    Mutation(
        "backend-left-out-without-model-py",
        DOUBLE,
        (swap(f"{_BACKEND}\n", ""), move("double/1/model.py", "double/1/main.py")),
        "backend-missing",
        "unable to find backend library for backend 'tar.gz'",
    ),
    Mutation("backend-from-default-model-filename", DOUBLE, swap(_BACKEND, 'default_model_filename: "model.py"')),
    Mutation(
        "backend-unknown",
        DOUBLE,
        swap(_BACKEND, 'backend: "pythn"'),
        "backend-not-in-release",
        "unable to find backend library for backend 'pythn'",
    ),
    Mutation(
        "backend-of-other-case",
        DOUBLE,
        swap(_BACKEND, 'backend: "Python"'),
        "backend-not-in-release",
        "unable to find backend library",
    ),
    Mutation(
        "platform-python",
        DOUBLE,
        swap(_BACKEND, 'platform: "python"'),
        "platform-unknown",
        "unexpected platform type 'python'",
    ),
    Mutation(
        "platform-unknown",
        DOUBLE,
        swap(_BACKEND, 'platform: "nothing"'),
        "platform-unknown",
        "unexpected platform type 'nothing'",
    ),
    Mutation("platform-beside-backend-python", DOUBLE, swap(_BACKEND, f'{_BACKEND} platform: "python"')),
    Mutation("platform-of-other-backend", DOUBLE, swap(_BACKEND, f'{_BACKEND} platform: "onnxruntime_onnx"')),
    Mutation(
        "platform-ensemble-beside-backend",
        DOUBLE,
        swap(_BACKEND, f'{_BACKEND} platform: "ensemble"'),
        "backend-platform-pair",
        "must have platform type 'ensemble' and empty backend type",
    ),
    Mutation(
        "platform-ensemble-without-steps",
        DOUBLE,
        swap(_BACKEND, 'platform: "ensemble"'),
        "ensemble-without-steps",
        "ensemble scheduling must be set",
    ),
    Mutation(
        "ensemble-scheduling-beside-backend",
        DOUBLE,
        more('ensemble_scheduling { step { model_name: "a" } }'),
        "ensemble-platform",
        "ensemble scheduling cannot be set",
    ),
    Mutation(
        "backend-tensorrt-without-platform",
        DOUBLE,
        swap(_BACKEND, 'backend: "tensorrt" platform: "onnxruntime_onnx"'),
        "backend-platform-pair",
        "unexpected 'platform' and 'backend' pair",
    ),
    Mutation(
        "default-model-filename-other",
        DOUBLE,
        (more('default_model_filename: "main.py"'), move("double/1/model.py", "double/1/main.py")),
    ),
    Mutation("runtime-given", DOUBLE, more('runtime: "libtriton_python.so"')),
    Mutation(
        "runtime-missing",
        DOUBLE,
        more('runtime: "libother.so"'),
        "runtime",
        "unable to find backend library 'libother.so'",
    ),
    Mutation("parameters-of-any-name", DOUBLE, more('parameters { key: "any" value { string_value: "thing" } }')),
    Mutation(
        "parameters-twice",
        DOUBLE,
        more(
            'parameters { key: "a" value { string_value: "1" } }\nparameters { key: "a" value { string_value: "2" } }'
        ),
    ),
    Mutation("parameters-without-value", DOUBLE, more('parameters { key: "any" }')),
    Mutation(
        "parameters-with-a-plain-value", DOUBLE, more('parameters { key: "any" value: "thing" }'), "config", "Expected"
    ),
    Mutation(
        "parameters-with-a-number",
        DOUBLE,
        more('parameters { key: "any" value { string_value: 1 } }'),
        "config",
        "Expected string",
    ),
    Mutation("metadata", DOUBLE, more('metric_tags { key: "team" value: "platform" }')),
    Mutation("cache-on-without-a-cache", DOUBLE, more(_CACHE)),
    Mutation(
        "cache-with-decoupled",
        DOUBLE,
        (more(_CACHE), more(_DECOUPLED)),
        "response-cache",
        "Response Cache does not currently support model",
    ),
    Mutation("decoupled", DOUBLE, more(_DECOUPLED)),
    Mutation(
        "metrics-of-a-newer-release",
        DOUBLE,
        more('model_metrics { metric_control { metric_identifier { family: "f" } } }'),
        "field-newer",
        'no field named "model_metrics"',
    ),
    Mutation("model-operations", DOUBLE, more('model_operations { op_library_filename: [ "a.so" ] }')),
    Mutation(
        "optimization", DOUBLE, more("optimization { priority: PRIORITY_MAX input_pinned_memory { enable: false } }")
    ),
    Mutation("optimization-unknown-priority", DOUBLE, more("optimization { priority: HIGH }"), "config", "HIGH"),
    Mutation(
        "repository-agent-missing",
        DOUBLE,
        more('model_repository_agents { agents [ { name: "none" } ] }'),
        "repository-agent",
        "unable to find 'libtritonrepoagent_none.so'",
    ),
    Mutation("labels", BATCHED, write("batched/labels.txt", "one\n")),
    Mutation("labels-empty", BATCHED, write("batched/labels.txt", "")),
    Mutation("labels-missing", BATCHED, drop("batched/labels.txt"), "label-file", "labels.txt"),
    Mutation(
        "labels-in-a-sub-folder",
        BATCHED,
        (swap('"labels.txt"', '"text/labels.txt"'), move("batched/labels.txt", "batched/text/labels.txt")),
    ),
)
