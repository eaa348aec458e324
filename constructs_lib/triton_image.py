"""The container image that an endpoint runs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tritonstack.catalogue import load_catalogue

_ECR_IMAGE = re.compile(
    r"^(?P<account>\d{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.(?P<suffix>amazonaws\.com(?:\.cn)?)"
    r"/(?P<repository>[a-z0-9._/-]+?)(?::(?P<tag>[\w.-]+)|@(?P<digest>sha256:[0-9a-f]{64}))$"
)
CODEBUILD_IMAGES = "aws/codebuild/"
"""How the names of CodeBuild's own images begin (CodeBuild user guide: "Docker images provided by CodeBuild")."""


@dataclass(frozen=True, kw_only=True)
class TritonImage:
    """An image in ECR.

    Attributes:
        uri: what a Model names, with its tag or digest.
        account: the account that holds the repository, 12 digits.
        region: the repository's region.
        repository: the repository's name.
    """

    uri: str
    account: str
    region: str
    repository: str

    @classmethod
    def from_release(cls, *, release: str, region: str) -> TritonImage:
        """AWS's own GPU image of a Triton release, as the catalogue knows it.

        Raises:
            LookupError: there is no such image in that region; the message names the nearest releases.
        """
        return cls.from_uri(load_catalogue().image_uri(release=release, region=region))

    @classmethod
    def from_uri(cls, uri: str) -> TritonImage:
        """An image of one's own.

        Raises:
            ValueError: the URI is no ECR image with a tag or a digest. A Model takes no other without a VPC
                (API reference: ``ContainerDefinition.Image``), and a role can be given the pull of no other.
        """
        match = _ECR_IMAGE.match(uri)
        if match is None:
            raise ValueError(
                "an image in ECR, <account>.dkr.ecr.<region>.amazonaws.com/<repository>:<tag> "
                "(also amazonaws.com.cn, and @sha256:<digest> for the tag)"
            )
        return cls(uri=uri, account=match["account"], region=match["region"], repository=match["repository"])

    @classmethod
    def of_machine(cls, name: str) -> TritonImage | None:
        """The image that a machine of CodeBuild pulls from ECR; None where it runs one of CodeBuild's own.

        Raises:
            ValueError: as :meth:`from_uri`.
        """
        return None if name.startswith(CODEBUILD_IMAGES) else cls.from_uri(name)

    def repository_arn(self, *, partition: str) -> str:
        """The repository's ARN in a partition (``aws``, ``aws-cn``, or a token)."""
        return f"arn:{partition}:ecr:{self.region}:{self.account}:repository/{self.repository}"
