"""Every archive that endpoints serve, and that records name, lies in the bucket, or the deployment makes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.errors import InputError, TritonstackError, WorkFailedError
from tritonstack.preflight.result import About, Result
from tritonstack.preflight.subject import Check, Subject
from tritonstack.read_only_aws import NotKnownError, not_known_of

if TYPE_CHECKING:
    from tritonstack.engines.preparation import PreparationPlan

_NAMED = 3


def check(subject: Subject) -> Iterator[Result]:
    """One result: what `tritonstack prepare --dry-run` finds."""
    about = About(
        check="archive",
        subject=subject.environment.environment,
        needed="every archive in the bucket, or made by the deployment",
    )
    yield from about.look(_look, subject)


def _look(about: About, subject: Subject) -> Result:
    name = subject.environment.environment
    advice = f"tritonstack prepare {name}, or tritonstack build and tritonstack publish {name}"
    try:
        plan = _plan(subject)
    except InputError:
        if subject.builds_on_deploy:
            return about.passes("no bucket yet: the deployment makes it, then builds every archive")
        return about.fails(
            "no bucket yet, and the deployment builds no archives",
            advice=f"cdk deploy '{name}/artifacts', then {advice}",
        )
    except WorkFailedError as error:
        raise _not_known(error) from error
    missing = [*(copy.name for copy in plan.copies), *(build.name for build in plan.builds)]
    if plan.refused:
        # Inputs that may not be read are not known; what cannot be made whoever reads them comes first.
        refused = min(plan.refused, key=lambda failure: _said_by_aws(failure.error) is not None)
        if _said_by_aws(refused.error) is not None:
            raise _not_known(refused.error) from refused.error
        return about.fails(f"{refused.name} cannot be made: {refused.error}", advice="Mend what it says.")
    if not missing:
        return about.passes(f"{len(plan.there)} there")
    some = ", ".join(str(one) for one in missing[:_NAMED]) + (" …" if len(missing) > _NAMED else "")
    found = f"{len(plan.there)} there, {len(missing)} missing ({some})"
    if subject.builds_on_deploy:
        return about.passes(f"{found}, which the deployment copies ({len(plan.copies)}) or builds")
    return about.fails(found, advice=advice)


def _plan(subject: Subject) -> PreparationPlan:
    """Imported here: most of what it stands on other checks do not need, and it takes a while to load."""
    from tritonstack.preflight.archive_plan import archive_plan  # noqa: PLC0415

    return archive_plan(subject)


def _not_known(error: TritonstackError) -> NotKnownError:
    """Why S3 or SSM did not say."""
    said = _said_by_aws(error)
    return not_known_of(said) if said is not None else NotKnownError(str(error), advice="Run it again.")


def _said_by_aws(error: BaseException | None) -> ClientError | BotoCoreError | None:
    """The refusal of AWS under an error of ours; None where there is none."""
    while error is not None:
        if isinstance(error, ClientError | BotoCoreError):
            return error
        error = error.__cause__
    return None


CHECK = Check(name="archive", title="archives in the bucket", run=check)
