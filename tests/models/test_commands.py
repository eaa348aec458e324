"""``tritonstack lint`` and ``tritonstack pack`` as a person runs them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.models.folders import write_double
from tritonstack.cli.root import main, root


def test_lint_prints_findings_and_ends_with_2(tmp_path: Path) -> None:
    folder = write_double(tmp_path)
    good = CliRunner().invoke(root, ["lint", str(folder), "--release", "26.10"])
    assert (good.exit_code, good.stdout) == (0, "")
    assert "1 folders, 0 errors, 0 warnings" in good.stderr

    (folder / "double/config.pbtxt").write_text('name: "double"\nbackend: "python"\nspeed: 3\n')
    bad = CliRunner().invoke(root, ["lint", str(folder)])
    assert bad.exit_code == 2
    assert f"{folder}/double/config.pbtxt:3:1: error: speed: an unknown field speed" in bad.stdout


def test_lint_refuses_a_release_that_does_not_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["tritonstack", "lint", str(tmp_path), "--release", "19.13"])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 2
    assert "19.13" in capsys.readouterr().err


def test_pack_prints_the_archives_checksum(tmp_path: Path) -> None:
    folder = write_double(tmp_path)
    target = tmp_path / "packed.tar.gz"
    done = CliRunner().invoke(root, ["pack", str(folder), str(target)])
    assert done.exit_code == 0
    assert done.stdout.split() == [hashlib.sha256(target.read_bytes()).hexdigest(), str(target)]
