"""Settings that a change gives other values, and the reported effect of each."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.review.projects import commit, git
from tritonstack.paths import REPOSITORY
from tritonstack.review.assembly import read_assembly, synthesise
from tritonstack.review.change import ABSENT, Level
from tritonstack.review.document import SettingEntry
from tritonstack.review.report import Known
from tritonstack.review.settings import MOST, changed_settings, effects_of, parsed, undone

BASE: dict[str, Any] = {
    "environment": "dev",
    "tags": {"team": "platform"},
    "zones": ["a", "b"],
    "endpoints": [{"name": "digits", "least": 1, "most": 2, "wait": 3}, {"name": "letters", "least": 1, "most": 1}],
}
APP = """
import json, os, pathlib, sys, yaml
from tests.review.small import resource, serving, write_assembly
folder = {folder}
[file] = folder.glob("*.yaml") if folder.is_dir() else []
settings = yaml.safe_load(file.read_text())
made = {{}}
for each in settings["endpoints"]:
    if each["least"] > each["most"]:
        sys.exit(print("found:   a least above the most", file=sys.stderr) or 2)
    name = each["name"].capitalize()
    fleet = serving(name=each["name"], variant={{"InitialInstanceCount": each["least"]}})
    made |= {{f"{{name}}{{part}}": json.loads(json.dumps(text).replace('"Config"', f'"{{name}}Config"'))
              for part, text in fleet.items()}}
    made[f"{{name}}Queue"] = resource("AWS::SQS::Queue", {{"DelaySeconds": each["most"]}})
write_assembly(pathlib.Path(os.environ["CDK_OUTDIR"]), template={{"Resources": made}})
"""
IN_CONTEXT = 'pathlib.Path(json.loads(os.environ["CDK_CONTEXT_JSON"]).get("environments-folder", "environments"))'
ELSEWHERE = 'pathlib.Path("{project}/environments")'


def project_of(folder: Path, after: dict[str, Any], *, app: str = IN_CONTEXT) -> Path:
    """A project whose settings were ``BASE`` at its one commit."""
    (folder / "environments").mkdir(parents=True)
    file = folder / "environments" / "dev.yaml"
    file.write_text(yaml.safe_dump(BASE))
    (folder / "app.py").write_text(APP.format(folder=app.format(project=folder)))
    command = f"env PYTHONPATH={REPOSITORY} {sys.executable} app.py"
    (folder / "cdk.json").write_text(json.dumps({"app": command}))
    git(folder, "init", "-q")
    commit(folder, "base")
    file.write_text(yaml.safe_dump(after))
    return folder


def changed(**values: Any) -> dict[str, Any]:
    """The base with other values: of the first endpoint, where it has the member."""
    made: dict[str, Any] = json.loads(json.dumps(BASE))
    for name, value in values.items():
        (made["endpoints"][0] if name in made["endpoints"][0] else made)[name] = value
    return made


def effects(project: Path) -> dict[str, SettingEntry]:
    """Path of a setting → what it does."""
    out = project / "cdk.out"
    synthesise(project, out, validation=False)
    now = read_assembly(out).environments["dev"]
    settings = changed_settings("dev", base="HEAD", project=project)
    return {each.path: each for each in effects_of(settings, now=now, project=project, known=Known())}


ENDPOINT = {"name": "signs", "least": 1, "most": 1}


@pytest.mark.parametrize(
    ("after", "paths"),
    [
        (changed(most=5), {"endpoints.digits.most": (2, 5)}),
        (changed(tags={"team": "platform", "cost": "7"}), {"tags.cost": (ABSENT, "7")}),
        (changed(zones=["b"]), {"zones": (["a", "b"], ["b"])}),
        (changed(wait=True), {"endpoints.digits.wait": (3, True)}),
        (changed(endpoints=[*BASE["endpoints"], ENDPOINT]), {"endpoints.signs": (ABSENT, ENDPOINT)}),
        (changed(endpoints=BASE["endpoints"][:1]), {"endpoints.letters": (BASE["endpoints"][1], ABSENT)}),
        (changed(endpoints=BASE["endpoints"][::-1]), {"endpoints": (BASE["endpoints"], BASE["endpoints"][::-1])}),
        (BASE, {}),
    ],
)
def test_a_setting_is_named_by_its_path_and_reverted_by_it(
    tmp_path: Path, after: dict[str, Any], paths: dict[str, Any]
) -> None:
    project = project_of(tmp_path / "project", after)
    found = changed_settings("dev", base="HEAD", project=project)
    assert {each.path: (each.before, each.after) for each in found} == paths
    assert undone(after, found) == BASE


def test_files_that_came_or_cannot_be_read_have_no_changed_settings(tmp_path: Path) -> None:
    project = project_of(tmp_path / "project", changed(most=5))
    (project / "environments" / "prod.yaml").write_text("environment: prod")
    assert changed_settings("prod", base="HEAD", project=project) == ()
    assert changed_settings("nowhere", base="HEAD", project=project) == ()
    (project / "environments" / "dev.yaml").write_text("a: [")
    assert changed_settings("dev", base="HEAD", project=project) == ()
    assert parsed("a: [") is None


def test_what_each_setting_does_is_what_a_synthesis_without_it_changes(tmp_path: Path) -> None:
    found = effects(project_of(tmp_path / "project", changed(least=2, most=5, wait=4)))
    assert {path: each.level for path, each in found.items()} == {
        "endpoints.digits.least": Level.LOOK,
        "endpoints.digits.most": Level.PLAIN,
        "endpoints.digits.wait": Level.NOTHING,
    }
    texts = {path: " ".join(one.text for one in each.effect or ()) for path, each in found.items()}
    assert "traffic of digits shifts" in texts["endpoints.digits.least"]
    assert "1 replaced (EndpointConfig)" in texts["endpoints.digits.least"]
    assert texts["endpoints.digits.most"] == "1 changed in place (Queue)"
    assert not any("letters" in text for text in texts.values())


def test_a_setting_that_is_valid_only_with_another_is_tried_with_it(tmp_path: Path) -> None:
    found = effects(project_of(tmp_path / "project", changed(least=3, most=3)))
    least, most = found["endpoints.digits.least"], found["endpoints.digits.most"]
    assert (least.together, most.together) == ((), ("endpoints.digits.least",))
    texts = [" ".join(one.text for one in each.effect or ()) for each in (least, most)]
    assert "Queue" not in texts[0]
    assert "traffic of digits shifts" in texts[1]
    assert "2 changed in place (Endpoint, Queue)" in texts[1]


def test_of_an_app_that_reads_other_settings_and_of_many_settings_the_effect_is_unknown(tmp_path: Path) -> None:
    found = effects(project_of(tmp_path / "elsewhere", changed(least=2), app=ELSEWHERE))
    assert [each.level for each in found.values()] == [None]
    many = changed(tags={f"tag{number}": "x" for number in range(MOST + 1)})
    assert {each.effect for each in effects(project_of(tmp_path / "many", many)).values()} == {None}
