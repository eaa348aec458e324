"""Small wheels made on the spot: nothing is fetched."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path


def make_wheel(folder: Path, name: str, version: str, *, tag: str = "py3-none-any", script: bool = False) -> str:
    """Write a wheel with one module that knows its ``TAG``. Returns the lock file's line for it, hash included."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}/__init__.py": f"TAG = {tag!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: {tag}\n",
    }
    if script:
        files[f"{info}/entry_points.txt"] = f"[console_scripts]\n{name} = {name}:main\n"
    record = f"{info}/RECORD"
    files[record] = "".join(f"{path},,\n" for path in (*files, record))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for file, text in files.items():
            wheel.writestr(zipfile.ZipInfo(file), text)
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"
