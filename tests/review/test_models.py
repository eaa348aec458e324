"""Models that come, go, change, go back and move, with the sizes of their archives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.review.projects import commit, git
from tests.review.releases import A10G, T4, A, B, C, dev, release_stack, write_manifest
from tritonstack.models.manifest import ManifestFolder, Sizes
from tritonstack.review import models
from tritonstack.review.document import ModelEntry
from tritonstack.review.models import CommittedReleases, ModelFolders, ModelKind, model_changes
from tritonstack.review.snapshot import Snapshots
from tritonstack.review.stored import write_snapshots

NOTHING = Sizes()


def here(folder: Path) -> Sizes:
    return Sizes([ManifestFolder(folder=folder)])


def changes(
    before: dict[str, str] | None, after: dict[str, str] | None, *, sizes: Sizes = NOTHING, to: str = T4
) -> tuple[ModelEntry, ...]:
    old = None if before is None else dev(release_stack(before))
    new = None if after is None else dev(release_stack(after, platform=to))
    return model_changes(old, new, sizes=sizes)


def test_one_that_comes_one_that_goes_and_one_that_is_rebuilt() -> None:
    found = changes({"gone": A, "kept": A, "changed": A}, {"kept": A, "changed": B, "new": C})
    assert [(each.kind, each.endpoint, each.model, each.before, each.after) for each in found] == [
        (ModelKind.REBUILT, "digits", "changed", A, B),
        (ModelKind.REMOVED, "digits", "gone", A, None),
        (ModelKind.ADDED, "digits", "new", None, C),
    ]
    assert "requests for it fail from then on" in found[1].sentence


def test_a_new_environment_adds_and_one_that_goes_removes_every_model() -> None:
    assert [each.kind for each in changes(None, {"one": A, "two": B})] == [ModelKind.ADDED] * 2
    assert [each.kind for each in changes({"one": A}, None)] == [ModelKind.REMOVED]


@given(*[st.dictionaries(st.sampled_from(["one", "two", "three"]), st.sampled_from([A, B, C]))] * 2)
def test_every_model_that_differs_is_told_once(before: dict[str, str], after: dict[str, str]) -> None:
    differing = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    assert [each.model for each in changes(before, after)] == differing


MOVES = {
    True: "depends on the platform and is built again",
    False: "is copied to the other prefix",
    None: "is not known here",
}


@pytest.mark.parametrize(
    ("to", "dependency", "target", "rebuilt"),
    [
        (A10G, "none", None, False),
        (A10G, "engine", A10G, True),
        (A10G, "python", "python-3.10", False),
        ("24.11-t4", "none", None, False),
        ("24.11-t4", "python", "python-3.12", True),
        (A10G, None, None, None),
    ],
)
def test_another_platform_moves_every_model_and_rebuilds_what_depends_on_it(
    tmp_path: Path, to: str, dependency: Any, target: str | None, rebuilt: bool | None
) -> None:
    if dependency is not None:
        write_manifest(tmp_path, "one", A, target=target, dependency=dependency)
    [change] = changes({"one": A}, {"one": A}, sizes=here(tmp_path), to=to)
    assert change.kind == ModelKind.MOVED
    assert f"from {T4} to {to}: " in change.sentence
    assert MOVES[rebuilt] in change.sentence


@pytest.mark.parametrize(
    "document",
    [[], {"models": {"one": A}}, {"models": [], "platform": T4}, {"models": {"one": "latest"}, "platform": T4}],
)
def test_a_document_of_another_form_is_no_release_set(document: Any) -> None:
    plain = release_stack({})
    other = dev(replace(plain, documents={"Activation/ReleaseSet": document}))
    assert model_changes(None, other, sizes=NOTHING) == ()


def test_where_no_manifest_tells_the_folder_does(tmp_path: Path) -> None:
    write_manifest(tmp_path, "told", A)
    old, new = (dev(release_stack({"one": A, "told": A}, platform=each)) for each in (T4, A10G))
    folders = ModelFolders(dependencies={"one": "engine", "told": "engine"})
    found = model_changes(old, new, sizes=here(tmp_path), folders=folders)
    assert [MOVES[True] in each.sentence for each in found] == [True, False]


def test_a_model_that_nothing_proves_is_reported_so_unless_it_is_removed() -> None:
    old, new = dev(release_stack({"gone": A})), dev(release_stack({"fil": A, "onnx": A}))
    folders = ModelFolders(unproven=dict.fromkeys(("fil", "gone"), "no backend fil"))
    found = model_changes(old, new, sizes=NOTHING, folders=folders)
    told = {each.model: each.sentence.endswith(" Proof skipped: no backend fil.") for each in found}
    assert told == {"fil": True, "gone": False, "onnx": False}


def test_a_size_is_that_of_the_manifest_built_here(tmp_path: Path) -> None:
    write_manifest(tmp_path, "one", A, sizes=(17, 40))
    write_manifest(tmp_path, "one", B, sizes=(2048, 4096))
    [change] = changes({"one": A}, {"one": B}, sizes=here(tmp_path))
    assert (change.size_bytes, change.size_unknown) == (2048, "")
    assert "(2.0 KiB, before 17 bytes)" in change.sentence


def test_an_unknown_size_has_a_reason_and_no_number(tmp_path: Path) -> None:
    write_manifest(tmp_path, "one", B)
    (tmp_path / f"one.{A}.json").write_text('{"format": 2}')
    [change] = changes(None, {"one": A}, sizes=here(tmp_path))
    assert (change.size_bytes, change.size_unknown) == (None, f"no manifest of {A} in .local/archives")
    assert f"size unknown: no manifest of {A}" in change.sentence
    assert changes(None, {"one": A})[0].size_unknown == "no manifests are given"


@pytest.mark.parametrize(("target", "reason"), [("local", "built for the local Triton"), (A10G, "no manifest of")])
def test_what_is_built_for_another_platform_is_not_what_is_served(tmp_path: Path, target: str, reason: str) -> None:
    write_manifest(tmp_path, "one", A, target=target, dependency="engine")
    [change] = changes(None, {"one": A}, sizes=here(tmp_path))
    assert (change.size_bytes, reason in change.size_unknown) == (None, True)


def test_a_digest_of_an_earlier_snapshot_is_a_rollback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tmp_path, "init", "--quiet")
    commits = []
    for digest in (A, B, C):
        snapshots = Snapshots(environments={"dev": dev(release_stack({"one": digest}))})
        write_snapshots(snapshots, tmp_path / "snapshots")
        commits.append(commit(tmp_path, digest))
    history = CommittedReleases(environment="dev", base=commits[-1], repository=tmp_path)
    before = dev(release_stack({"one": C}))
    [back] = model_changes(before, dev(release_stack({"one": A})), sizes=NOTHING, earlier=history)
    assert back.kind == ModelKind.ROLLED_BACK
    assert f"rolled back to what the snapshots of {commits[0][:12]} had: {C} → {A}" in back.sentence
    [forward] = model_changes(before, dev(release_stack({"one": "d" * 16})), sizes=NOTHING, earlier=history)
    assert forward.kind == ModelKind.REBUILT
    monkeypatch.setattr(models, "MOST_COMMITS", 2)
    bounded = CommittedReleases(environment="dev", base=commits[-1], repository=tmp_path)
    [unseen] = model_changes(before, dev(release_stack({"one": A})), sizes=NOTHING, earlier=bounded)
    assert unseen.kind == ModelKind.REBUILT
    other = CommittedReleases(environment="prod", base=commits[-1], repository=tmp_path)
    assert other("serving-digits", "digits", "one", A) is None


def test_snapshots_of_another_form_are_passed_over(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    write_snapshots(Snapshots(environments={"dev": dev(release_stack({"one": A}))}), tmp_path / "snapshots")
    commit(tmp_path, "sound")
    file = tmp_path / "snapshots/dev/serving-digits.json"
    for text in ("{", "[]", '{"Resources": {}}'):
        file.write_text(text)
        commit(tmp_path, "wrong")
    file.unlink()
    base = commit(tmp_path, "gone")
    history = CommittedReleases(environment="dev", base=base, repository=tmp_path)
    assert history("serving-digits", "digits", "one", A) is not None
