"""JSON values and stacks, drawn by hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.review.small import CONFIG, ENDPOINT, MODEL, resource, stack
from tritonstack.review.snapshot import StackSnapshot

_KINDS = (MODEL, CONFIG, ENDPOINT, "AWS::SNS::Topic", "AWS::EC2::VPC", "Custom::Thing", "AWS::Nobody::Knows")
_NAMES = ("A", "B", "C", "D")
_MEMBERS = ("EndpointName", "PrimaryContainer", "ProductionVariants", "TopicName", "InstanceTenancy", "Tags", "Other")


def json_values() -> st.SearchStrategy[Any]:
    """Small JSON values; whole numbers only, for JSON's ``1.0`` is ``1``."""
    scalars = st.none() | st.booleans() | st.integers(0, 2) | st.text("ab", max_size=2)
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abAB", min_size=1), inner, max_size=3),
        max_leaves=8,
    )


@st.composite
def stacks(draw: st.DrawFn) -> StackSnapshot:
    """A stack of few resources, which refer to one another."""
    reference = st.sampled_from(_NAMES).map(lambda name: {"Ref": name})
    attribute = st.sampled_from(_NAMES).map(lambda name: {"Fn::GetAtt": [name, "Arn"]})
    value = json_values() | reference | attribute
    resources = draw(
        st.dictionaries(
            st.sampled_from(_NAMES),
            st.builds(
                resource,
                st.sampled_from(_KINDS),
                st.dictionaries(st.sampled_from(_MEMBERS), value, max_size=3),
            ),
            max_size=4,
        )
    )
    return stack(
        resources, documents=draw(st.dictionaries(st.just("Set"), json_values().map(lambda each: {"a": each})))
    )
