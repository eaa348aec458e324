"""What the package ``tritonstack`` uses of this one, found by the entry point ``tritonstack.local_aws``.

Other modules of this package are imported when they are used: building
and packing a model needs none of the local AWS, and the local AWS needs none of the proofs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonstack.extensions import require_modules

if TYPE_CHECKING:
    import numpy as np

    from tritonstack.local_aws import ContainerAnswer
    from tritonstack.models.programs import Report
    from tritonstack_local.aws import LocalAws

require_modules("psutil")


def find_local_aws() -> LocalAws | None:
    """The local AWS that runs, or None. Raises InputError where the record of it is damaged."""
    from tritonstack_local import aws  # noqa: PLC0415

    return aws.find_local_aws()


def require_local_aws() -> LocalAws:
    """The local AWS that runs. Raises InputError where there is none, WorkFailedError where a part has ended."""
    from tritonstack_local import aws  # noqa: PLC0415

    return aws.require_local_aws()


def answer_in_container(
    repository: Path,
    *,
    model: str,
    needs: Collection[str],
    request: Mapping[str, np.ndarray[Any, Any]],
    loads: tuple[str, ...],
    work: Path,
    report: Report,
) -> ContainerAnswer:
    """Load a staged repository in the local Triton, and send one request; see ``container.proof``."""
    from tritonstack_local.container import proof  # noqa: PLC0415

    return proof.answer_in_container(
        repository, model=model, needs=needs, request=request, loads=loads, work=work, report=report
    )
