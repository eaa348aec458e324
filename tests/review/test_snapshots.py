"""The committed snapshots are what is synthesised now."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.review.small import out_of_date
from tests.stacks.app_process import ROOT
from tritonstack.review.assembly import read_assembly
from tritonstack.review.intrinsics import references
from tritonstack.review.snapshot import Snapshots
from tritonstack.review.stored import FOLDER, texts_of

COMMITTED = ROOT / FOLDER


@pytest.fixture(scope="module")
def synthesised(assembly: Path) -> Snapshots:
    return read_assembly(assembly)


def test_the_committed_snapshots_are_what_is_synthesised(synthesised: Snapshots) -> None:
    outdated = out_of_date(synthesised, COMMITTED)
    if outdated:
        pytest.fail("\n".join(["snapshots/ is out of date:", *outdated]), pytrace=False)


def test_a_config_is_deleted_only_after_the_endpoint_that_reads_its_name(synthesised: Snapshots) -> None:
    """SageMaker would take it before (``DeleteEndpointConfig``), and the endpoint could not be updated any more."""
    endpoints = 0
    for environment in synthesised.environments.values():
        for stack in environment.stacks.values():
            configs = {name for name, each in stack.resources.items() if each.type == "AWS::SageMaker::EndpointConfig"}
            for each in stack.resources.values():
                if each.type == "AWS::SageMaker::Endpoint":
                    endpoints += 1
                    assert configs & set(references(each.properties["EndpointConfigName"])), each.logical_id
    assert endpoints


def test_no_hash_of_an_asset_and_no_commit_is_in_them(synthesised: Snapshots, assembly: Path) -> None:
    hashes = {digest for path in assembly.rglob("*.assets.json") for digest in json.loads(path.read_text())["files"]}
    assert hashes
    commits = {
        commit
        for path in assembly.glob("*.release-set")
        for commit in json.loads(path.read_text())["commits"].values()
        if len(commit) == 40
    }
    for name, text in texts_of(synthesised).items():
        assert not [each for each in hashes | commits if each in text], name
