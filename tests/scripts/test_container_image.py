"""The image for other systems: what it brings is what a checkout needs. No Docker engine builds it here."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
INSTRUCTIONS = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
WORDS = INSTRUCTIONS.split()
DEVCONTAINER = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())


def test_the_image_is_pinned_and_brings_what_the_readme_asks_for() -> None:
    platform, image, stage = re.findall(r"^FROM (--platform=\S+) (\S+) AS (\S+)$", INSTRUCTIONS, re.MULTILINE)[0]
    assert platform == "--platform=linux/amd64"
    assert re.fullmatch(r"node:22\.\d+\.\d+-bookworm-slim", image)  # Debian 12
    assert stage == DEVCONTAINER["build"]["target"]
    needed = re.findall(r"`apt install ([^`]+)`", (ROOT / "README.md").read_text())[0].split()
    assert needed
    assert {*needed, "make", "python3"} - set(WORDS) == set()


def test_the_development_container_uses_that_image_and_environments_of_its_own() -> None:
    build = DEVCONTAINER["build"]
    assert (ROOT / ".devcontainer" / build["dockerfile"]).resolve() == ROOT / "Dockerfile"
    assert {*build["options"], *DEVCONTAINER["runArgs"]} >= {"--platform=linux/amd64"}
    folder = DEVCONTAINER["workspaceFolder"]
    assert f"WORKDIR {folder}\nUSER {DEVCONTAINER['remoteUser']}\n" in INSTRUCTIONS
    mounted = {re.findall(r"target=([^,]+)", each)[0] for each in DEVCONTAINER["mounts"]}
    assert mounted == {f"{folder}/{each}" for each in (".envs", ".local", "node_modules")}
    assert mounted < set(WORDS), "a new volume gets its owner from the image's folder"


def test_what_a_checkout_makes_is_not_copied_into_the_image() -> None:
    ignored = (ROOT / ".gitignore").read_text().split()
    names = {f"**/{each.strip('/')}" if each[0] != "/" and each[0] != "." else each.strip("/") for each in ignored}
    assert names - set((ROOT / ".dockerignore").read_text().split()) == set()
