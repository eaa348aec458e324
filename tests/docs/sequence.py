"""The blocks of a page that run, as one shell in a copy of the checkout, with a local AWS of its own."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import uuid
from collections.abc import Sequence
from pathlib import Path

from tests.docs.pages import SHELL, CodeBlock
from tests.docs.registry import Entry
from tests.e2e.project import PROGRAM, REPOSITORY

INTERRUPTED_AFTER_SECONDS = 6
SHARED = (".envs", "node_modules")
"""What a copy of the checkout need not make anew."""
NO_SETUP = "import sys\n\nprint('set up already:', *sys.argv[1:])\n"
"""In place of the copy's scripts/setup.py, which would make the shared environments anew, for the copy's path."""
IDENTITY = ("-c", "user.name=reader", "-c", "user.email=reader@example.com")


def checkout(folder: Path) -> Path:
    """A copy of this working tree as a clone has it, with what `make setup` made, committed to a branch ``main``."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=REPOSITORY, text=True, capture_output=True, check=True,
    ).stdout  # fmt: skip
    root = folder / "tritonstack"
    for name in filter(None, listed.split("\0")):
        source, target = REPOSITORY / name, root / name
        if source.is_file():  # not what was deleted and not yet committed
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    for name in SHARED:
        (root / name).symlink_to(REPOSITORY / name)
    (root / "scripts" / "setup.py").write_text(NO_SETUP)
    (root / ".git").mkdir()
    (root / ".git" / "info").mkdir()
    (root / ".git" / "info" / "exclude").write_text("\n".join(SHARED))  # .gitignore means folders, not links
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], [*IDENTITY, "commit", "-q", "-m", "as cloned"]):
        subprocess.run(["git", *command], cwd=root, check=True, capture_output=True)
    return root


def variables(root: Path) -> dict[str, str]:
    """A shell's environment in that checkout: nothing of the caller's AWS, free ports, no question asked."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "TRITONSTACK_"))}
    programs = [REPOSITORY / ".envs" / "main" / "bin", REPOSITORY / "node_modules" / ".bin"]
    return {
        **inherited,
        "PATH": os.pathsep.join([*map(str, programs), os.environ["PATH"]]),
        "TRITONSTACK_PROJECT": str(root),
        "TRITONSTACK_HOME": str(root / ".local"),
        "TRITONSTACK_PORT": "0",
        "TRITONSTACK_RUNTIME_PORT": "0",
        "CDK_REQUIRE_APPROVAL": "never",
        "CDK_VALIDATION": "false",
        "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20",
        "GIT_AUTHOR_NAME": "reader",
        "GIT_AUTHOR_EMAIL": "reader@example.com",
        "GIT_COMMITTER_NAME": "reader",
        "GIT_COMMITTER_EMAIL": "reader@example.com",
        "COLUMNS": "200",
    }


def script(block: CodeBlock, entry: Entry) -> str:
    """The lines that a shell runs for one block: its commands, or the writing of the file that it is."""
    if block.file:
        end = f"END-{uuid.uuid5(uuid.NAMESPACE_URL, block.text).hex}"
        folder = shlex.quote(str(Path(block.file).parent))
        return f"mkdir -p {folder}\ncat > {shlex.quote(block.file)} <<'{end}'\n{block.text}\n{end}\n"
    assert block.language in SHELL, f"{block} neither names a file nor is a shell's"
    lines = []
    for line in block.commands.splitlines():
        shown = line
        for placeholder, value in entry.replace.items():
            shown = shown.replace(placeholder, value)
        endless = shown.partition("  #")[0].strip() in entry.until_interrupted
        lines.append(interrupted(shown.partition("  #")[0].strip()) if endless else shown)
    return "\n".join([entry.before, *lines]) + "\n"


def interrupted(line: str) -> str:
    """A command in a terminal that goes on until Ctrl-C, and gets it; it ends as one that was interrupted, or well."""
    limited = f"timeout --foreground --signal=INT --preserve-status {INTERRUPTED_AFTER_SECONDS} {line}"
    terminal = f"script --quiet --return --command {shlex.quote(limited)} /dev/null"
    return f"{{ code=0; {terminal} || code=$?; test $code -eq 0 -o $code -eq 130; }}"


def run_sequence(root: Path, blocks: Sequence[tuple[CodeBlock, Entry]], *, seconds: float) -> list[str]:
    """Run the blocks one after the other in one shell; the local AWS is stopped at the end, whatever happened.

    Returns what each printed.

    Raises AssertionError: a command ended with an error, or a block does not print what its entry says.
    """
    mark = f"=== {uuid.uuid4().hex} "
    parts = ["set -eu -o pipefail"]
    for number, (block, entry) in enumerate(blocks):
        parts += [f"echo {shlex.quote(f'{mark}{number}')}", script(block, entry)]
    log = root.parent / "printed"
    try:
        with log.open("w") as printed:
            code = subprocess.run(
                ["bash", "-c", "\n".join(parts)], cwd=root, env=variables(root), stdin=subprocess.DEVNULL,
                stdout=printed, stderr=subprocess.STDOUT, timeout=seconds, check=False,
            ).returncode  # fmt: skip
    finally:
        subprocess.run([str(PROGRAM), "local", "down"], cwd=root, env=variables(root), check=True, capture_output=True)
    said = log.read_text().split(mark)[1:]
    assert code == 0, f"{blocks[len(said) - 1][0]} ended with {code}:\n{said[-1]}"
    for (block, entry), text in zip(blocks, said, strict=True):
        assert [word for word in entry.prints if word not in text] == [], f"{block} printed:\n{text}"
        if entry.recorded is not None:
            missing = not_printed(recorded(entry.recorded, block.begins), text)
            assert missing == [], f"{block} does not print as {entry.recorded} has it:\n{text}"
    return said


def recorded(path: str, command: str) -> list[str]:
    """The lines that a recording has of a command."""
    lines = (REPOSITORY / path).read_text(encoding="utf-8").splitlines()
    start = lines.index(f"$ {command}") + 1
    end = next((at for at in range(start, len(lines)) if lines[at].startswith(("$ ", "[…]"))), len(lines))
    return [line for line in lines[start:end] if line.strip()]


def not_printed(lines: Sequence[str], text: str) -> list[str]:
    """Those of ``lines`` that ``text`` lacks, whatever figures, rulers and spaces they have."""

    def shape(line: str) -> str:
        return " ".join(re.sub(r"─+", "─", re.sub(r"\d[\d.,]*", "0", line)).split())

    printed = set(map(shape, text.splitlines()))
    return [line for line in lines if shape(line) not in printed]
