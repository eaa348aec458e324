"""Pages of the published posts: each name of a post stands on its page, and the page's commands make a model of it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from shutil import copytree

import yaml

from tests.cases import cases
from tests.docs.pages import code_blocks
from tests.e2e.project import REPOSITORY
from tritonstack.config import load_environment
from tritonstack.models.model_config import read_config
from tritonstack.served import served_by

FOLDER = "docs/walkthroughs"
RENAMES = ("cp ", "sed ", "echo ")
"""The commands of a page that make a model folder under a post's own name begin so."""


@cases("page, names")
def test_every_name_and_member_of_a_post_stands_on_its_page(page: str, names: list[str]) -> None:
    text = (REPOSITORY / FOLDER / page).read_text(encoding="utf-8")
    assert [name for name in names if name not in text] == []


@cases("page, copied, archives, model")
def test_a_pages_environment_serves_a_model_of_the_posts_name(
    page: str, copied: list[str], archives: list[str], model: str, tmp_path: Path
) -> None:
    blocks = [block for block in code_blocks(f"{FOLDER}/{page}") if block.heading == "Run it"]
    for name in copied:
        copytree(REPOSITORY / "model_repos" / name, tmp_path / "model_repos" / name)
    copytree(REPOSITORY / "model_repos" / "_exporters", tmp_path / "model_repos" / "_exporters")
    copytree(REPOSITORY / "requirements", tmp_path / "requirements")
    [shell] = [block for block in blocks if block.language == "console"]
    lines = [line for line in shell.commands.splitlines() if line.startswith(RENAMES)]
    subprocess.run(["bash", "-euc", "\n".join(lines)], cwd=tmp_path, check=True)
    [settings] = [block for block in blocks if block.language == "yaml"]
    file = tmp_path / f"{yaml.safe_load(settings.text)['environment']}.yaml"
    file.write_text(settings.text)
    served = served_by(load_environment(file), tmp_path / "model_repos", file=file)
    assert sorted(served.sources) == archives
    assert [each.variant_name for each in served.environment.endpoints] == ["AllTraffic"]
    source = served.sources[archives[0]]
    assert source.model == model
    config = read_config((source.folder / source.directory / "config.pbtxt").read_text())
    assert config.node.text("name") == source.directory
