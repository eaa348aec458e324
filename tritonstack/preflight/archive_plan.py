"""What `tritonstack prepare` would do, found out by reading alone."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from tritonstack.engines.orders import orders_of, source_of_digest
from tritonstack.engines.preparation import PreparationPlan, plan_preparation
from tritonstack.models.bucket import ArtifactBucket
from tritonstack.models.source import ArchiveSource, BuildChoice
from tritonstack.naming import ArchiveName
from tritonstack.preflight.subject import Subject


def archive_plan(subject: Subject) -> PreparationPlan:
    """The archives that are there, and those that would be copied or built.

    Raises:
        InputError: the artifacts are not deployed.
        WorkFailedError: S3 or SSM refuses.
    """
    environment = subject.environment
    bucket = ArtifactBucket(environment=environment.environment, session=subject.calls)
    orders = orders_of(subject.served, environment.endpoints, session=subject.calls)
    with TemporaryDirectory(prefix="tritonstack-preflight-") as folder:

        def source_of(name: ArchiveName, choice: BuildChoice) -> ArchiveSource:
            return source_of_digest(
                name.model,
                name.digest,
                repositories=subject.project / "model_repos",
                bucket=bucket,
                work=Path(folder),
                choice=choice,
            )

        return plan_preparation(orders, bucket=bucket, source_of=source_of, local=subject.local)
