"""Where pretrained weights come from."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tritonstack.errors import WorkFailedError
from tritonstack.exporters import hub

REVISION = "0123456789abcdef0123456789abcdef01234567"
SOURCE = {"hub": "somebody/model", "revision": REVISION}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty revision in a folder laid out like the hub."""
    place = tmp_path / "somebody" / "model" / REVISION
    place.mkdir(parents=True)
    monkeypatch.setenv(hub.FOLDER_VARIABLE, str(tmp_path))
    return place


def test_files_are_found_in_the_revisions_folder(folder: Path) -> None:
    (folder / "config.json").write_text("{}")
    assert hub.fetch(SOURCE, ["config.json"]) == folder
    assert hub.digests(folder, ["config.json"]) == {"config.json": hashlib.sha256(b"{}").hexdigest()}


def test_every_missing_file_is_named(folder: Path) -> None:
    (folder / "config.json").write_text("{}")
    with pytest.raises(WorkFailedError, match=f"somebody/model at {REVISION} has no a.bin, b.bin in {folder}"):
        hub.fetch(SOURCE, ["a.bin", "config.json", "b.bin"])


@pytest.mark.parametrize("revision", ["", "main", REVISION[:12], REVISION.upper(), f"../{REVISION}"])
def test_a_revision_that_is_no_commit_is_refused(revision: str) -> None:
    with pytest.raises(WorkFailedError, match="not a commit's 40 hexadecimal digits"):
        hub.fetch({"hub": "somebody/model", "revision": revision}, [])


@pytest.mark.parametrize("identifier", ["../secret", "a/b/c", "a/..", "/etc", "a b/c", ""])
def test_an_identifier_that_would_lead_elsewhere_is_refused(identifier: str) -> None:
    with pytest.raises(WorkFailedError, match="not an organisation and a name"):
        hub.fetch({"hub": identifier, "revision": REVISION}, [])


@pytest.mark.parametrize("source", [None, {}])
def test_pretrained_weights_without_a_source_are_refused(source: dict[str, str] | None) -> None:
    with pytest.raises(WorkFailedError, match="need `source"):
        hub.fetch(source, [])
