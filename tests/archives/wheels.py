"""Small wheels made on the spot: nothing is fetched."""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Mapping
from importlib.metadata import distributions
from pathlib import Path


def make_wheel(
    folder: Path,
    name: str,
    version: str,
    *,
    tag: str = "py3-none-any",
    script: bool = False,
    module: str = "",
    code: str = "",
    library: bytes = b"",
) -> str:
    """Write a wheel with one module (``name``, or ``module`` with ``code``) that knows its ``TAG``.

    ``library``: the content of a shared library beside it.

    Returns the lock file's line for it, hash included.
    """
    info = f"{name.replace(chr(45), chr(95))}-{version}.dist-info"
    files = {
        f"{module or name}/__init__.py": f"TAG = {tag!r}\n{code}",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: {tag}\n",
    }
    if script:
        files[f"{info}/entry_points.txt"] = f"[console_scripts]\n{name} = {name}:main\n"
    content = {name: text.encode() for name, text in files.items()}
    content |= {f"{module or name}/_C.so": library} if library else {}
    record = f"{info}/RECORD"
    content[record] = "".join(f"{path},,\n" for path in (*content, record)).encode()
    return _write(folder, name, version, tag=tag, files=content)


def wheel_of_installed(folder: Path, name: str, site: Path) -> str:
    """Write the wheel of a package that is installed in ``site``. Returns the lock file's line for it."""
    (found,) = [each for each in distributions(path=[str(site)]) if each.metadata["Name"] == name]
    listed = [str(file) for file in found.files or () if not str(file).startswith("..")]
    files = {
        file: (site / file).read_bytes() for file in listed if (site / file).is_file() and "__pycache__" not in file
    }
    tag = re.findall(r"(?m)^Tag: (.*)$", (found.read_text("WHEEL") or ""))[-1]
    return _write(folder, name, found.version, tag=tag, files=files)


def _write(folder: Path, name: str, version: str, *, tag: str, files: Mapping[str, bytes]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name.replace('-', '_')}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for file, content in files.items():
            wheel.writestr(zipfile.ZipInfo(file), content)
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
