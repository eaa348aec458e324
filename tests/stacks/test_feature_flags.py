"""cdk.json's feature flags: as the pinned CDK recommends them, or with a reason in docs/upgrading.md."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.stacks.app_process import ROOT, committed_assembly

CONTEXT = json.loads((ROOT / "cdk.json").read_text())["context"]


def test_the_cdk_s_command_line_finds_no_flag_unset_and_every_other_value_has_its_reason(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    manifest = json.loads((committed_assembly(tmp_path_factory) / "manifest.json").read_text())
    flags: dict[str, Any] = manifest["artifacts"]["aws-cdk-lib/feature-flag-report"]["properties"]["flags"]
    # As the command line counts them ("… feature flags are not configured").
    unset = [
        name
        for name, flag in flags.items()
        if "userValue" not in flag
        and flag.get("unconfiguredBehavesLike", {}).get("v2", False) != flag["recommendedValue"]
    ]
    assert unset == []
    differs = {name for name, value in CONTEXT.items() if name in flags and value != flags[name]["recommendedValue"]}
    section = (ROOT / "docs" / "upgrading.md").read_text().partition("## CDK feature flags\n")[2].partition("\n## ")[0]
    assert differs == set(re.findall(r"`(@aws-cdk/[^`]+)`", section))
    assert {name for name in CONTEXT if name.startswith("@")} <= flags.keys(), "one that this CDK does not have"


@pytest.mark.parametrize("folder", sorted(path.parent.name for path in ROOT.glob("examples/*/cdk.json")))
def test_an_example_s_flags_are_those_of_this_repository(folder: str) -> None:
    assert json.loads((ROOT / "examples" / folder / "cdk.json").read_text())["context"] == CONTEXT
