"""JSON values and stacks, drawn by hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.review.small import CONFIG, ENDPOINT, MODEL, resource, stack
from tritonstack.review.snapshot import StackSnapshot

_KINDS = (MODEL, CONFIG, ENDPOINT, "AWS::SNS::Topic", "AWS::EC2::VPC", "Custom::Thing", "AWS::Nobody::Knows")
_NAMES = ("A", "B", "C", "D")
_MEMBERS = ("EndpointName", "PrimaryContainer", "ProductionVariants", "TopicName", "InstanceTenancy", "Tags", "Other")


_SCALARS = st.none() | st.booleans() | st.integers(0, 2) | st.text("ab", max_size=2)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abAB"), inner, max_size=3),
    max_leaves=6,
)
_REFERENCES = st.sampled_from([{"Ref": name} for name in _NAMES] + [{"Fn::GetAtt": [name, "Arn"]} for name in _NAMES])
_RESOURCES = st.builds(
    resource,
    st.sampled_from(_KINDS),
    st.dictionaries(st.sampled_from(_MEMBERS), _REFERENCES | _VALUES, max_size=3),
)
_STACKS = st.builds(
    lambda resources, document: stack(resources, documents={} if document is None else {"Set": {"a": document}}),
    st.dictionaries(st.sampled_from(_NAMES), _RESOURCES, max_size=4),
    _SCALARS,
)


def json_values() -> st.SearchStrategy[Any]:
    """Small JSON values; whole numbers only, for JSON's ``1.0`` is ``1``."""
    return _VALUES


def stacks() -> st.SearchStrategy[StackSnapshot]:
    """A stack of few resources, which refer to one another."""
    return _STACKS
