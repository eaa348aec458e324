"""Pruning: objects of the bucket, and archives, exports and downloads on this machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.models.fake_aws import FakeAws
from tests.models.folders import EXPORT_HEAD, places_in, source_of, write, write_double
from tritonstack.cli.root import root
from tritonstack.errors import InputError
from tritonstack.models.build import build_models
from tritonstack.models.execution_environment import environment_stem
from tritonstack.models.inputs import model_digest
from tritonstack.models.manifest import Places
from tritonstack.models.prune import LocalPlan, Pruning, carry_out_local, plan_local
from tritonstack.models.source import BuildChoice

OLD = 100.0


def _digest(number: int) -> str:
    return f"{number:016x}"


def _archive(
    aws: FakeAws, number: int, *, endpoint: str = "numbers", platform: str = "24.09-t4", age: float = OLD
) -> str:
    key = f"endpoints/{endpoint}/{platform}/double.{_digest(number)}.tar.gz"
    aws.objects[key] = b"archive"
    aws.ages[key] = age
    aws.objects[f"manifests/{endpoint}/{platform}/double.{_digest(number)}.json"] = b"{}"
    aws.objects[f"inputs/{_digest(number)}.zip"] = b"zip"
    return key


@pytest.fixture
def aws(aws: FakeAws) -> FakeAws:
    aws.parameters["/tritonstack/dev/numbers/double"] = [_digest(number) for number in range(1, 9)]
    return aws


def test_the_current_digest_and_the_kept_history_stay(aws: FakeAws) -> None:
    keys = {number: _archive(aws, number) for number in range(10)}
    plan = Pruning("dev", session=aws).plan(history=5)
    going = [item.archive_key for item in plan.unneeded]
    assert going == [keys[number] for number in (0, 1, 2, 9)]  # 8 is current, 3 to 7 are the history
    assert plan.kept == 6


def test_planning_deletes_nothing_and_carrying_out_deletes_archives_first(aws: FakeAws) -> None:
    keys = [_archive(aws, 99), _archive(aws, 99, platform="25.09-t4")]
    _archive(aws, 98, age=1.0)  # it may not be activated yet
    pruning, digest = Pruning("dev", session=aws), _digest(99)
    assert len(pruning.plan(grace_hours=0.5).unneeded) == 3
    plan = pruning.plan(grace_hours=2)
    assert aws.deletes == []
    pruning.carry_out(plan)
    assert aws.deletes[:2] == keys
    manifests = [f"manifests/numbers/{platform}/double.{digest}.json" for platform in ("24.09-t4", "25.09-t4")]
    assert sorted(aws.deletes[2:]) == [f"inputs/{digest}.zip", *manifests]


def test_inputs_stay_while_another_platform_or_endpoint_needs_them(aws: FakeAws) -> None:
    _archive(aws, 8)
    _archive(aws, 8, endpoint="unrecorded")
    plan = Pruning("dev", session=aws).plan()
    assert [item.keys for item in plan.unneeded] == [
        (
            f"endpoints/unrecorded/24.09-t4/double.{_digest(8)}.tar.gz",
            f"manifests/unrecorded/24.09-t4/double.{_digest(8)}.json",
        )
    ]


def test_an_archive_s_client_files_go_with_it_and_another_s_stay(aws: FakeAws) -> None:
    _archive(aws, 99)
    _archive(aws, 8)
    aws.objects["endpoints/numbers/24.09-t4/notes.txt"] = b"kept"
    aws.ages["endpoints/numbers/24.09-t4/notes.txt"] = OLD
    folder = f"manifests/numbers/24.09-t4/double.{_digest(99)}"
    for digest in (99, 8):
        aws.objects[f"manifests/numbers/24.09-t4/double.{_digest(digest)}/labels.txt"] = b"cat"
    pruning = Pruning("dev", session=aws)
    pruning.carry_out(pruning.plan())
    assert f"{folder}/labels.txt" in aws.deletes
    assert not any(_digest(8) in key or "notes" in key for key in aws.deletes)


EXPORT = EXPORT_HEAD + "write(options['file'], '2')\nreport()\n"
OLD_DIGEST = "0123456789abcdef"


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """A project with the folder ``double``, of two sizes and two exports, built in both sizes."""
    folder = write_double(tmp_path)
    files = ["double/1/a.txt", "labels.txt"]
    exports = [{"script": "export.py", "produces": [file], "options": {"file": file}} for file in files]
    write(folder, {"export.py": EXPORT})
    with (folder / "recipe.yaml").open("a") as recipe:
        recipe.write(f"exports: {json.dumps(exports)}\nsizes: {{tiny: {{layers: 1}}}}\nclient_files: [labels.txt]\n")
    found = places_in(tmp_path)
    build_models(["double"], places=found)
    build_models(["double"], choice=BuildChoice(size="tiny"), places=found)
    return found


def there(places: Places) -> set[str]:
    """Every file and folder that builds have left."""
    roots = (places.archives, places.exports, places.sources)
    return {str(path.relative_to(root.parent)) for root in roots for path in root.rglob("*")}


def going(plan: LocalPlan) -> set[str]:
    return {path.name for item in plan.unneeded for path in item.paths}


def test_what_was_built_before_a_change_goes_and_what_is_built_after_it_stays(places: Places) -> None:
    old = there(places)
    plan = plan_local(places)
    assert (plan.unneeded, plan.kept) == ((), 2 + 4)  # two archives; two sizes of two exports
    recipe = places.folder("double") / "recipe.yaml"
    recipe.write_text(recipe.read_text() + "seed: 7\n")
    (built,) = build_models(["double"], places=places).built
    new = there(places) - old
    plan = plan_local(places)
    assert plan.kept == 1 + 2
    assert there(places) == old | new  # planning removes nothing
    carry_out_local(plan)
    left = there(places)
    assert left <= new | {"archives", "exports"}
    assert new <= left
    assert not build_models(["double"], places=places).built[0].fresh
    assert places.built(built.name) is not None


def test_an_archive_goes_with_its_manifest_and_client_files_from_every_targets_folder(places: Places) -> None:
    content = {
        f"double.{OLD_DIGEST}.tar.gz": "ab",
        f"double.{OLD_DIGEST}.json": "c",
        f"double.{OLD_DIGEST}.files/labels.txt": "d",
    }
    write(places.archives, content)
    write(places.archives / "24.09-t4", content)
    plan = plan_local(places)
    assert [[path.name for path in item.paths] for item in plan.unneeded] == [
        [f"double.{OLD_DIGEST}.tar.gz", f"double.{OLD_DIGEST}.files", f"double.{OLD_DIGEST}.json"]
    ] * 2
    assert [item.bytes for item in plan.unneeded] == [4, 4]
    carry_out_local(plan)
    assert not any(OLD_DIGEST in path for path in there(places))


def test_exports_environments_and_downloads_that_no_recipe_names_go(places: Places) -> None:
    folder = places.folder("double")
    digests = {"old": "a" * 64, "new": "b" * 64}
    write(folder, {"requirements.txt": "numpy==2.4.6\n"})
    with (folder / "recipe.yaml").open("a") as recipe:
        recipe.write("execution_environment: {requirements: requirements.txt, packed_as: env.tar.gz}\n")
        recipe.write(f"source: {{s3: 's3://bucket/key', sha256: '{digests['new']}'}}\n")
    part = source_of(folder).recipe.execution_environment
    assert part is not None
    needed = environment_stem(folder, part, python="3.10")
    unneeded = needed[:-16] + OLD_DIGEST
    write(places.exports, {f"{stem}.tar.{end}": "" for stem in (needed, unneeded) for end in ("gz", "json")})
    write(places.exports / f"double.{OLD_DIGEST}", {"report.json": "{}"})
    write(places.sources, dict.fromkeys(digests.values(), ""))
    names = going(plan_local(places))
    assert {f"double.{OLD_DIGEST}", f"{unneeded}.tar.gz", f"{unneeded}.tar.json", digests["old"]} <= names
    assert not names & {f"{needed}.tar.gz", f"{needed}.tar.json", digests["new"]}


def test_files_of_other_names_and_a_running_builds_stay(places: Places) -> None:
    others = {"notes.txt": "", f"double.{OLD_DIGEST}.partial-x/file": "", ".double.partial-y/file": ""}
    write(places.archives, others)
    write(places.exports, others)
    write(places.sources, others | {"a" * 63: ""})
    assert plan_local(places).unneeded == ()
    (write_double(places.repositories.parent, "wrong") / "recipe.yaml").write_text("kind: unknown\n")
    with pytest.raises(InputError, match=r"wrong/recipe\.yaml"):  # then nothing is known to be unneeded
        plan_local(places)


def test_the_command_lists_and_removes_only_when_told_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITONSTACK_PROJECT", str(tmp_path))
    monkeypatch.setenv("TRITONSTACK_HOME", str(tmp_path / ".local"))
    folder = write_double(tmp_path)
    archives = tmp_path / ".local/archives"
    old, kept = f"double.{OLD_DIGEST}.tar.gz", f"double.{model_digest(source_of(folder))}.tar.gz"
    write(archives, {old: "ab", kept: "c"})
    for arguments in ([], ["dev", "--local"]):
        assert "an environment, or --local" in str(CliRunner().invoke(root, ["prune", *arguments]).exception)
    listed = CliRunner().invoke(root, ["prune", "--local"])
    assert listed.stdout == f"{archives / old}  2 bytes\n"
    assert "2 bytes would be removed (--yes removes them); 1 stay" in listed.stderr
    assert sorted(path.name for path in archives.iterdir()) == sorted([old, kept])
    done = CliRunner().invoke(root, ["prune", "--local", "--yes"])
    assert "1 archives, exports and downloads, 2 bytes removed; 1 stay" in done.stderr
    assert [path.name for path in archives.iterdir()] == [kept]
