"""``scripts/stale_catalogue.py``: the catalogue against what the installed packages carry."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from scripts import stale_catalogue
from tritonstack.catalogue import Catalogue, load_catalogue

CATALOGUE = load_catalogue()


def test_the_committed_catalogue_is_what_the_pinned_packages_have(capsys: pytest.CaptureFixture[str]) -> None:
    assert stale_catalogue.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("current  ") for line in lines[:-1]), lines
    assert {"botocore", "cfn-lint", "aws-cdk-lib"} <= {line.rsplit(" ", 2)[-2] for line in lines[:-1]}
    assert lines[-1].startswith("not compared: images by release and region")


def test_a_host_ami_and_an_account_that_the_catalogue_lacks_or_has_otherwise_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = CATALOGUE.image_table
    accounts = {**table.accounts, "dlc": {**table.accounts["dlc"], "us-east-1": "111111111111"}}
    behind: Catalogue = dataclasses.replace(
        CATALOGUE, host_amis=CATALOGUE.host_amis[:-1], image_table=dataclasses.replace(table, accounts=accounts)
    )
    monkeypatch.setattr(stale_catalogue, "load_catalogue", lambda: behind)
    assert stale_catalogue.main([]) == 1
    stale = [line for line in capsys.readouterr().out.splitlines() if line.startswith("STALE")]
    assert len(stale) == 2
    assert "host_amis.json): not in the catalogue: al2023-ami-sagemaker-inference-gpu-4-1" in stale[0]
    assert "not in the catalogue: us-east-1 763104351884; not in aws-cdk-lib" in stale[1]
    assert "us-east-1 111111111111" in stale[1]


def test_an_sdk_with_a_newer_image_or_another_account_makes_the_catalogue_stale(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = CATALOGUE.image_table
    listed = {
        release: {"registries": {region: table.accounts["dlc"][region] for region in table.regions[release]}}
        for release, kind in table.generations.items()
        if kind == "dlc" and release not in table.without_region_list
    }
    file = tmp_path / "sagemaker/core" / stale_catalogue.SDK_FILE
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"versions": listed}))
    assert stale_catalogue.main(["--sdk", str(tmp_path)]) == 0
    listed["26.12"] = {"registries": {"us-east-1": "763104351884"}}
    file.write_text(json.dumps({"versions": listed}))
    capsys.readouterr()
    assert stale_catalogue.main(["--sdk", str(tmp_path)]) == 1
    assert "not in the catalogue: 26.12 us-east-1" in capsys.readouterr().out
    file.unlink()
    stale_catalogue.main(["--sdk", str(tmp_path)])
    assert f"{tmp_path} has no image_uri_config" in capsys.readouterr().out
