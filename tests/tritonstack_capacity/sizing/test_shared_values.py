"""YAML's anchors, aliases, merges and tags: an edit changes one endpoint alone, or is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tritonstack_capacity.sizing.edits import HEAD, edit_of, endpoint_text, written
from tritonstack.config import load_environment
from tritonstack.errors import InputError

ANCHORED = "scaling: &s {minimum: 2, maximum: 4, requests_per_second: 9}"


@pytest.mark.parametrize(
    "endpoints",
    {
        "an alias": endpoint_text(ANCHORED, name="other") + endpoint_text("scaling: *s"),
        "the anchor of an alias": endpoint_text(ANCHORED) + endpoint_text("scaling: *s", name="other"),
        "the anchor of a number": endpoint_text("scaling: {minimum: 2, maximum: &n 4, requests_per_second: 9}")
        + endpoint_text("initial_instance_count: *n", name="other"),
        "an alias of a number": endpoint_text("initial_instance_count: &n 4", name="other")
        + endpoint_text("scaling: {minimum: 2, maximum: *n, requests_per_second: 9}"),
        "a tag": endpoint_text("scaling: {minimum: 2, maximum: !!int 4, requests_per_second: 9}"),
        "a merged scaling": endpoint_text(ANCHORED, name="other", anchor="&base") + "  - {<<: *base, name: digits}\n",
        "an endpoint that others merge": endpoint_text(anchor="&base") + "  - {<<: *base, name: other}\n",
    }.items(),
    ids=lambda named: named[0],
)
def test_values_that_others_share_are_refused_with_what_to_write(endpoints: tuple[str, str], tmp_path: Path) -> None:
    file = written(tmp_path, f"{HEAD}endpoints:\n{endpoints[1]}")
    before = file.read_bytes()
    with pytest.raises(InputError) as refused:
        edit_of(file)
    [problem] = refused.value.problems
    assert "an anchor (&), an alias (*) or a merge (<<)" in problem.found
    assert "scaling.maximum: 20" in problem.advice
    assert file.read_bytes() == before


@pytest.mark.parametrize("other", ["  - {<<: *base, name: other}\n", endpoint_text("scaling: *s", name="other")])
def test_shared_values_that_say_the_advice_already_need_no_edit(other: str, tmp_path: Path) -> None:
    said = "scaling: &s {minimum: 2, maximum: 20, requests_per_second: 10}"
    file = written(tmp_path, f"{HEAD}endpoints:\n{endpoint_text(said, anchor='&base')}{other}")
    assert not edit_of(file).changed


@pytest.mark.parametrize(
    ("own", "edited"),
    [
        ("scaling: {<<: *s, maximum: 7}  # own", "scaling: {<<: *s, maximum: 20, requests_per_second: 10}  # own"),
        ("scaling: {<<: *s}", "scaling: {maximum: 20, requests_per_second: 10, <<: *s}"),
        ("scaling:\n      # own\n      <<: *s", "scaling:\n      # own\n      maximum: 20"),
    ],
)
def test_own_fields_go_before_merged_ones_and_the_other_endpoint_stays(own: str, edited: str, tmp_path: Path) -> None:
    file = written(tmp_path, f"{HEAD}endpoints:\n{endpoint_text(ANCHORED, name='other')}{endpoint_text(own)}")
    before = load_environment(file)
    edit_of(file).write()
    assert edited in file.read_text()
    assert load_environment(file).endpoint("other") == before.endpoint("other")
    assert not edit_of(file).changed


def test_an_endpoint_that_merges_another_gets_a_block_of_its_own(tmp_path: Path) -> None:
    merging = "  - <<: *base\n    name: digits\n"
    file = written(tmp_path, f"{HEAD}endpoints:\n{endpoint_text(name='other', anchor='&base')}{merging}")
    before = load_environment(file)
    edit_of(file).write()
    assert "  - scaling: {minimum: 1, maximum: 20, requests_per_second: 10, safety_factor: 0.5}" in file.read_text()
    assert merging[4:] in file.read_text()
    assert load_environment(file).endpoint("other") == before.endpoint("other")


def test_a_place_beside_an_alias_is_not_where_its_anchor_stands(tmp_path: Path) -> None:
    other = endpoint_text(name="other").replace("instance_type: ", "instance_type: &type ")
    own = endpoint_text().replace("instance_type: ml.g4dn.xlarge", "instance_type: *type")
    file = written(tmp_path, f"{HEAD}endpoints:\n{other}{own}")
    edit_of(file).write()
    assert other in file.read_text()
    assert load_environment(file).endpoint("digits") is not None


def test_a_way_of_writing_that_no_edit_suits_is_refused(tmp_path: Path) -> None:
    own = endpoint_text().replace("- name: digits", "- ? name\n    : digits")
    own = own.replace("instance_type: ml.g4dn.xlarge", "instance_type: >-\n      ml.g4dn.xlarge")
    file = written(tmp_path, f"{HEAD}endpoints:\n{own}")
    before = file.read_bytes()
    with pytest.raises(InputError, match="no value can be changed alone"):
        edit_of(file)
    assert file.read_bytes() == before
