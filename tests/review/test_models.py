"""Models that come, go, change, go back and move."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import cases
from tests.review.projects import commit, git
from tests.review.releases import T4, A, B, C, dev, release_stack
from tritonstack.review.document import ModelEntry
from tritonstack.review.model_changes import earlier_releases
from tritonstack.review.model_changes.earlier_releases import committed_releases
from tritonstack.review.model_changes.models import ModelChangeKind, ModelFolders, model_changes
from tritonstack.review.snapshot import NO_ENVIRONMENT, Snapshots
from tritonstack.review.stored import write_snapshots


def changes(
    before: dict[str, str] | None,
    after: dict[str, str] | None,
    *,
    to: str = T4,
    folders: ModelFolders | None = None,
) -> tuple[ModelEntry, ...]:
    old = NO_ENVIRONMENT if before is None else dev(release_stack(before))
    new = NO_ENVIRONMENT if after is None else dev(release_stack(after, platform=to))
    return model_changes(old, new, folders=folders)


def test_one_that_comes_one_that_goes_and_one_that_is_rebuilt() -> None:
    found = changes({"gone": A, "kept": A, "changed": A}, {"kept": A, "changed": B, "new": C})
    assert [(each.kind, each.endpoint, each.model, each.before, each.after) for each in found] == [
        (ModelChangeKind.REBUILT, "digits", "changed", A, B),
        (ModelChangeKind.REMOVED, "digits", "gone", A, None),
        (ModelChangeKind.ADDED, "digits", "new", None, C),
    ]
    assert "requests for it fail from then on" in found[1].sentence


def test_a_new_environment_adds_and_one_that_goes_removes_every_model() -> None:
    assert [each.kind for each in changes(None, {"one": A, "two": B})] == [ModelChangeKind.ADDED] * 2
    assert [each.kind for each in changes({"one": A}, None)] == [ModelChangeKind.REMOVED]


@given(*[st.dictionaries(st.sampled_from(["one", "two", "three"]), st.sampled_from([A, B, C]))] * 2)
def test_every_model_that_differs_is_reported_once(before: dict[str, str], after: dict[str, str]) -> None:
    differing = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    assert [each.model for each in changes(before, after)] == differing


MOVES = {
    True: "depends on the platform and is built again",
    False: "is copied to the other prefix",
    None: "is not known here",
}


@cases("to, dependency, rebuilt")
def test_another_platform_moves_every_model_and_rebuilds_what_depends_on_it(
    to: str, dependency: str | None, rebuilt: bool | None
) -> None:
    folders = ModelFolders(dependencies={} if dependency is None else {"one": dependency})
    [change] = changes({"one": A}, {"one": A}, to=to, folders=folders)
    assert change.kind == ModelChangeKind.MOVED
    assert f"from {T4} to {to}: " in change.sentence
    assert MOVES[rebuilt] in change.sentence


@pytest.mark.parametrize(
    "document",
    [[], {"models": {"one": A}}, {"models": [], "platform": T4}, {"models": {"one": "latest"}, "platform": T4}],
)
def test_a_document_of_another_form_is_no_release_set(document: Any) -> None:
    plain = release_stack({})
    other = dev(replace(plain, documents={"Activation/ReleaseSet": document}))
    assert model_changes(NO_ENVIRONMENT, other) == ()


def test_a_model_that_nothing_proves_is_reported_so_unless_it_is_removed() -> None:
    folders = ModelFolders(unproven=dict.fromkeys(("fil", "gone"), "no backend fil"))
    found = changes({"gone": A}, {"fil": A, "onnx": A}, folders=folders)
    is_skipped = {each.model: each.sentence.endswith(" Proof skipped: no backend fil.") for each in found}
    assert is_skipped == {"fil": True, "gone": False, "onnx": False}


def test_a_model_on_a_second_endpoint_is_reported_with_what_callers_must_do() -> None:
    first, second = release_stack({"one": A}), release_stack({"one": B}, endpoint="second")
    [entry] = model_changes(dev(first), dev(first, second))
    assert entry.kind == ModelChangeKind.ADDED_BESIDE
    assert entry.sentence.endswith("First let every caller name digits/one.")
    assert {each.kind for each in model_changes(NO_ENVIRONMENT, dev(first, second))} == {ModelChangeKind.ADDED}


def test_a_digest_of_an_earlier_snapshot_is_a_rollback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tmp_path, "init", "--quiet")
    commits = []
    for digest in (A, B, C):
        snapshots = Snapshots(environments={"dev": dev(release_stack({"one": digest}))})
        write_snapshots(snapshots, tmp_path / "snapshots")
        commits.append(commit(tmp_path, digest))
    history = committed_releases("dev", base=commits[-1], repository=tmp_path)
    before = dev(release_stack({"one": C}))
    [back] = model_changes(before, dev(release_stack({"one": A})), earlier=history)
    assert back.kind == ModelChangeKind.ROLLED_BACK
    assert f"rolled back to what the snapshots of {commits[0][:12]} had: {C} → {A}" in back.sentence
    [forward] = model_changes(before, dev(release_stack({"one": "d" * 16})), earlier=history)
    assert forward.kind == ModelChangeKind.REBUILT
    monkeypatch.setattr(earlier_releases, "MOST_COMMITS", 2)
    bounded = committed_releases("dev", base=commits[-1], repository=tmp_path)
    [unseen] = model_changes(before, dev(release_stack({"one": A})), earlier=bounded)
    assert unseen.kind == ModelChangeKind.REBUILT
    other = committed_releases("prod", base=commits[-1], repository=tmp_path)
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
    history = committed_releases("dev", base=base, repository=tmp_path)
    assert history("serving-digits", "digits", "one", A) is not None
