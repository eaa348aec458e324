"""The source of builds: the part of this repository that exports, proves and packs, as one asset."""

from __future__ import annotations

import functools
import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as s3_assets
from constructs import Construct

from constructs_lib.permission import allow
from tritonstack.paths import CARRIED, LIBRARY, repository_path

MODELS, REQUIREMENTS = "model_repos", "requirements"
PACKAGES = ("tritonstack", "tritonstack_capacity", "tritonstack_local")
"""Builds prove archives in the local Triton, load tests measure. A package that is not installed is left out."""
FILES = ("pyproject.toml", "scripts/setup.py")
_LEFT_OUT = frozenset({"__pycache__", CARRIED})


class BuildSource(Construct):
    """What a build starts from. The same content is the same asset: neither time stamps nor places are in its hash.

    Attributes:
        asset: the asset, unpacked by the build.
    """

    def __init__(self, scope: Construct, construct_id: str, *, models: Path | None) -> None:
        """Make the asset.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            models: the folder of the model folders; in the asset it is ``model_repos``. None: the asset has none.
        """
        super().__init__(scope, construct_id)
        folder, digest = _gathered(None if models is None else models.resolve())
        self.asset = s3_assets.Asset(
            self, "Files", path=folder, asset_hash=digest, asset_hash_type=cdk.AssetHashType.CUSTOM
        )

    @property
    def location(self) -> str:
        """Bucket and key, as CodeBuild writes them."""
        return f"{self.asset.s3_bucket_name}/{self.asset.s3_object_key}"

    @property
    def bucket_arn(self) -> str:
        """The staging bucket's ARN."""
        return f"arn:{cdk.Stack.of(self).partition}:s3:::{self.asset.s3_bucket_name}"

    @property
    def object_arn(self) -> str:
        """The ARN of the one object."""
        return f"{self.bucket_arn}/{self.asset.s3_object_key}"

    def allow_reading(self, policy: iam.Policy) -> None:
        """Let a build's role fetch the source: CodeBuild looks the bucket up first."""
        allow(policy, "ReadSource", actions=["s3:GetObject", "s3:GetObjectVersion"], resources=[self.object_arn])
        allow(policy, "FindSource", actions=["s3:GetBucketAcl", "s3:GetBucketLocation"], resources=[self.bucket_arn])


def source_files(models: Path | None) -> Iterator[tuple[str, Path]]:
    """Name in the asset → file, in the order of the names. Links and compiled Python are left out.

    Lock files that lie beside ``models`` take the place of this repository's: digests cover them.
    """
    found = {name: repository_path(name) for name in FILES}
    found |= _below(repository_path(REQUIREMENTS), REQUIREMENTS)
    for package in PACKAGES:
        found |= _below(LIBRARY / package, package)
    if models is not None:
        found |= _below(models.parent / REQUIREMENTS, REQUIREMENTS)
        found |= _below(models, MODELS)
    yield from sorted(found.items())


def _below(folder: Path, name: str) -> dict[str, Path]:
    return {
        f"{name}/{path.relative_to(folder).as_posix()}": path
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and not _LEFT_OUT & set(path.relative_to(folder).parts)
    }


@functools.cache
def _gathered(models: Path | None) -> tuple[str, str]:
    """A folder with the files, which goes with the process, and the SHA-256 of what they are called and contain."""
    digest = hashlib.sha256()
    folder = Path(_temporary().name, hashlib.sha256(str(models).encode()).hexdigest()[:16])
    for name, path in source_files(models):
        content = path.read_bytes()
        digest.update(f"{name}\n{len(content)}\n".encode() + content)
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    return str(folder), digest.hexdigest()


@functools.cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="build-source-")
