"""Repositories that the two modes judge differently, or whose model SageMaker's front end would pick at random.

In multi-model mode the front end looks for an ensemble by a regular expression of its own, and the core overwrites the
name of the model that it loads. In single-model mode the model is named, and its name is checked.
"""

from __future__ import annotations

from tests.differential.bases import CHAIN, DOUBLE
from tests.differential.repository import Mutation, move, nothing, swap

_NAME, _EQUAL = "name-differs", "directory name must equal model name"
_PLATFORM = 'platform: "ensemble"'

SINGLE = (
    Mutation("one-model-as-it-is", DOUBLE, nothing),
    Mutation("one-ensemble-as-it-is", CHAIN, nothing),
    Mutation("directory-of-other-name", DOUBLE, swap('"double"', '"other"'), _NAME, _EQUAL),
    Mutation("ensemble-of-other-name", CHAIN, swap('"chain"', '"other"'), _NAME, _EQUAL),
    Mutation("name-of-other-case", DOUBLE, swap('"double"', '"Double"'), _NAME, _EQUAL),
    Mutation("version-folder-missing", DOUBLE, move("double/1", "double/v1"), "no-version", "at least one version"),
    Mutation(
        "platform-left-out",
        CHAIN,
        swap(_PLATFORM, ""),
        "ensemble-platform",
        "Could not determine backend for model 'chain'",
    ),
    Mutation("platform-with-a-space", CHAIN, swap(_PLATFORM, 'platform : "ensemble"')),
    Mutation("platform-in-single-quotes", CHAIN, swap(_PLATFORM, "platform: 'ensemble'")),
    Mutation("platform-after-a-comment", CHAIN, swap(_PLATFORM, 'platform: # of steps\n"ensemble"')),
    Mutation(
        "platform-of-other-case",
        CHAIN,
        swap(_PLATFORM, 'platform: "Ensemble"'),
        "platform-unknown",
        "unexpected platform type 'Ensemble'",
    ),
    Mutation(
        "backend-instead-of-platform",
        CHAIN,
        swap(_PLATFORM, 'backend: "ensemble"'),
        "ensemble-platform",
        "ensemble scheduling cannot be set for model",
    ),
    Mutation("step-of-a-version", CHAIN, swap('"two" model_version: -1', '"two" model_version: 1')),
)
