"""What a wheel carries besides its packages; all else about it stands in pyproject.toml.

In a checkout, Lambda functions, schemas and the like lie next to the packages. A wheel has them in
``tritonstack/_repository``, where ``tritonstack/paths.py`` finds them. And it has ``stacks`` under a name that no
app gives to a folder of its own. See docs/decisions/0016-one-wheel.md.
"""

from collections.abc import Iterator
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
CARRIED = (
    "cdk.json",
    "docs/**/*.md",
    "lambda/*/*.py",
    "package*.json",
    "pyproject.toml",
    "requirements/*",
    "schemas/*.json",
    "scripts/setup.py",
)
STACKS = "tritonstack_stacks"


def carried() -> Iterator[tuple[Path, Path]]:
    """File of the repository → its place in the wheel."""
    for pattern in CARRIED:
        for file in sorted(ROOT.glob(pattern)):
            yield file, Path("tritonstack", "_repository", file.relative_to(ROOT))
    for pattern in ("*.py", "*.json", "py.typed"):
        for file in sorted((ROOT / "stacks").glob(pattern)):
            yield file, Path(STACKS, file.name)


class BuildWithRepository(build_py):
    """Copies these files too."""

    def run(self) -> None:
        """Build the packages, then copy."""
        super().run()
        for file, place in carried():
            target = Path(self.build_lib, place)
            self.mkpath(str(target.parent))
            self.copy_file(str(file), str(target), preserve_mode=False)


if __name__ == "__main__":
    setup(cmdclass={"build_py": BuildWithRepository})
