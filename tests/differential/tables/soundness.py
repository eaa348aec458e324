"""The bases themselves, unchanged."""

from __future__ import annotations

from tests.differential import bases
from tests.differential.repository import Mutation, nothing

SOUND = (
    Mutation("double-as-it-is", bases.DOUBLE, nothing),
    Mutation("chain-as-it-is", bases.CHAIN, nothing),
    Mutation("branches-as-it-is", bases.BRANCHES, nothing),
    Mutation("optional-as-it-is", bases.OPTIONAL, nothing),
    Mutation("reshaped-as-it-is", bases.RESHAPED, nothing),
    Mutation("versions-as-it-is", bases.VERSIONS, nothing),
    Mutation("batched-as-it-is", bases.BATCHED, nothing),
    Mutation("sequence-as-it-is", bases.SEQUENCE, nothing),
    Mutation("ragged-as-it-is", bases.RAGGED, nothing),
)
