"""The committed snapshots are what is synthesised now."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.review.small import out_of_date
from tests.stacks.app_process import ROOT
from tritonstack.review.assembly import read_assembly
from tritonstack.review.intrinsics import references
from tritonstack.review.snapshot import Snapshots
from tritonstack.review.stored import FOLDER, texts_of

COMMITTED = ROOT / FOLDER
DIGEST_OF_TEXTS = """
import hashlib, pathlib, sys
from tritonstack.review.assembly import read_assembly
from tritonstack.review.stored import texts_of
texts = texts_of(read_assembly(pathlib.Path(sys.argv[1])))
print(hashlib.sha256(repr(texts).encode()).hexdigest())
"""


@pytest.fixture(scope="module")
def synthesised(assembly: Path) -> Snapshots:
    return read_assembly(assembly)


def test_the_committed_snapshots_are_what_is_synthesised(synthesised: Snapshots) -> None:
    told = out_of_date(synthesised, COMMITTED)
    if told:
        pytest.fail("\n".join(["snapshots/ is out of date:", *told]), pytrace=False)


def test_every_environment_has_its_stacks_assets_and_findings(synthesised: Snapshots) -> None:
    files = {path.stem: path for path in (ROOT / "environments").glob("*.yaml")}
    assert synthesised.environments.keys() == files.keys()
    for name, environment in synthesised.environments.items():
        endpoints = yaml.safe_load(files[name].read_text())["endpoints"]
        serving = {f"serving-{endpoint['name']}" for endpoint in endpoints}
        assert {"artifacts", *serving} <= environment.stacks.keys()
        assert environment.findings is not None
        assert environment.findings.accepted
        for stack in serving:
            release_set = environment.stacks[stack].documents["Activation/ReleaseSet"]
            assert release_set.keys() == {"models", "platform", "schema"}


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


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_every_python_writes_the_same_bytes(synthesised: Snapshots, assembly: Path, version: str) -> None:
    """Of the CDK's own output only one Python's is here; what this package makes of it is the same in each."""
    program = sys.executable if version == "{}.{}".format(*sys.version_info) else shutil.which(f"python{version}")
    arguments = [program or "", "-c", DIGEST_OF_TEXTS, str(assembly)]
    ran = None if program is None else subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)
    if ran is None or (ran.returncode == 127 and program != sys.executable):
        pytest.skip(f"there is no Python {version} on this machine")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == hashlib.sha256(repr(texts_of(synthesised)).encode()).hexdigest()
