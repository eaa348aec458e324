"""``tritonstack build``, ``pack``, ``publish`` and ``prune``: archives on this machine and in the bucket."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, get_args

import click

from tritonstack.adding.new_folder import record_samples, response_changes
from tritonstack.archives.build import (
    BuildSummary,
    Built,
    build_environment,
    build_models,
    refuse_errors_of_environment,
)
from tritonstack.archives.packing import pack_reporting
from tritonstack.archives.prune import DEFAULT_GRACE_HOURS, DEFAULT_HISTORY, Pruning
from tritonstack.archives.publish import publish_environment
from tritonstack.cli.conventions import LOCAL, echo, environment_option, json_option, local_option, print_json
from tritonstack.cli.progress import ShownStep, Steps
from tritonstack.cli.session import require_account, session_of
from tritonstack.config import load_environment
from tritonstack.errors import InputError, Problem
from tritonstack.lint.registry import shown
from tritonstack.local_aws import is_local
from tritonstack.models.digest import digests_of
from tritonstack.models.manifest import Places
from tritonstack.models.recipe import Size, Weights
from tritonstack.models.selection import choice_of, resolved_models
from tritonstack.models.source import BuildChoice
from tritonstack.paths import environment_file, project_folder


@click.command("build", epilog="example: tritonstack build iris --record-sample")
@click.argument("models", nargs=-1)
@environment_option("Build the models of this environment's endpoints, for their releases.", default=None)
@click.option(
    "--size", type=click.Choice(get_args(Size)), help="Size of the models; tiny: the same architecture with few layers."
)
@click.option(
    "--weights",
    type=click.Choice(get_args(Weights)),
    help="Weights of the models; random: from the recipe's seed, without a download.",
)
@click.option(
    "--record-sample",
    is_flag=True,
    help="First record the responses of MODELS to their sample requests as the expected responses.",
)
@json_option("Print JSON: every archive with its size, figures and what stood in for parts of the cloud.")
def build_command(
    *,
    models: tuple[str, ...],
    environment: str | None,
    size: Size | None,
    weights: Weights | None,
    record_sample: bool,
    as_json: bool,
) -> None:
    """Export, verify and pack MODELS, or every model of an environment.

    MODELS are archives, or folders below model_repos/ for all their archives. Archives that were built from the same
    inputs are kept. With an environment, models are linted first for its endpoints' releases and instance types, and an
    error stops the build; --size and --weights default to the environment's. Without one, models are built in full size
    with pretrained weights.
    """
    if record_sample and not models:
        allowed = "the models whose expected responses shall be replaced"
        raise InputError([Problem(field="--record-sample", found="no MODELS", allowed=allowed)])
    if not models and environment is None:
        environment = LOCAL
    changes = {name: value for name, value in (("size", size), ("weights", weights)) if value is not None}
    if record_sample:
        with Steps().step("record the responses to the sample requests") as step:
            choice = _choice(environment, changes)
            recorded = record_samples(models, choice=choice, places=Places.of_project(), report=step.say)
            step.end_with(f"{len(recorded)} recorded")
        for each in recorded:
            echo(f"{shown(each.file)}: {each}")
            for line in response_changes(each) if each.earlier else ():
                echo(f"  {line}")
    with Steps().step("build the model archives") as step:
        summary = _build(models, environment, changes, step)
        step.end_with(str(summary))
    if as_json:
        print_json(built_document(summary))
    for item in () if as_json else summary.built:
        echo(built_lines(item))


def built_document(summary: BuildSummary) -> dict[str, Any]:
    """JSON document of ``build --json``."""
    archives = [
        {
            "model": item.name.model,
            "digest": item.name.digest,
            "fresh": item.fresh,
            "bytes": item.manifest.archive.bytes,
            "figures": item.manifest.figures,
            "stand_ins": item.manifest.stand_ins,
        }
        for item in summary.built
    ]
    return {"environment": summary.environment or None, "archives": archives, "left_to_deployment": summary.left}


def built_lines(item: Built) -> str:
    """An archive, its size, its figures, what its steps took, and what was not as it will be in the cloud."""
    manifest = item.manifest
    figures = ", ".join(f"{name} {value:.4g}" for name, value in manifest.figures.items())
    lines = [f"{item.name}  {manifest.archive.bytes:,} bytes  {figures}".rstrip()]
    lines += [f"  {step}" for step in item.spent]
    if manifest.plan is False:
        lines.append("  no engine: it holds the ONNX graph, and only the local AWS serves it")
    lines += [f"  proven with {line}" for line in manifest.stand_ins if item.fresh]
    if manifest.proof_skipped:
        lines.append(
            f"  proof skipped: {manifest.proof_skipped}; in an account, the verification after a deployment sends the "
            "sample"
        )
    return "\n".join(lines)


def _choice(environment: str | None, changes: dict[str, Any]) -> BuildChoice:
    """How the models are built: by the environment's settings, which options override."""
    if environment is None:
        return BuildChoice(**changes)
    return dataclasses.replace(choice_of(load_environment(environment_file(environment))), **changes)


def _build(models: tuple[str, ...], environment: str | None, changes: dict[str, Any], step: ShownStep) -> BuildSummary:
    if environment is None:
        return build_models(models, choice=_choice(None, changes), report=step.say)
    file = environment_file(environment)
    settings = load_environment(file)
    settings = settings.model_copy(update={"builds": settings.builds.model_copy(update=changes)})
    resolved = resolved_models(settings, project_folder() / "model_repos", file=file)
    digests_of(source for sources in resolved.values() for source in sources)
    refuse_errors_of_environment(settings, models=models)
    return build_environment(settings, models=models, local=environment == LOCAL, report=step.say)


@click.command("pack", epilog="example: tritonstack pack model_repos/iris iris.tar.gz")
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("target", type=click.Path(path_type=Path))
@json_option()
def pack_command(*, folder: Path, target: Path, as_json: bool) -> None:
    """Pack the model repository FOLDER into TARGET (.tar.gz), the same bytes every time."""
    with Steps().step(f"pack {folder}") as step:
        result = pack_reporting(folder, target, name=folder.name, report=step.say)
        step.end_with(f"{result.tar_bytes:,} → {result.bytes:,} bytes")
    if as_json:
        print_json(dataclasses.asdict(result) | {"archive": str(result.archive)})
    else:
        echo(f"{result.sha256}  {result.archive}")


@click.command("publish", epilog="example: tritonstack publish -e prod")
@environment_option()
@json_option("Print JSON: every archive with its outcome.")
@local_option
def publish_command(*, environment: str, as_json: bool, local: bool) -> None:
    """Upload the built archives of ENVIRONMENT to its bucket.

    The AWS credentials must be of the environment's account. Environment local is the running local AWS.
    """
    settings = load_environment(environment_file(environment))
    session = session_of(settings, local=local)
    require_account(session, settings)
    on_local_aws = is_local(session.client("s3"))
    with Steps().step(f"publish the archives of {environment}") as step:
        summary = publish_environment(settings, session=session, local=on_local_aws, report=step.say)
        step.end_with(str(summary))
    if as_json:
        print_json(dataclasses.asdict(summary))
    for item in () if as_json else summary.archives:
        echo(f"s3://{summary.bucket}/{item.key}  {item.outcome}")


@click.command("prune", epilog="example: tritonstack prune -e prod --history 5")
@environment_option()
@click.option(
    "--history",
    type=click.IntRange(min=0),
    default=DEFAULT_HISTORY,
    show_default=True,
    help="Number of earlier releases of each model whose archives are kept.",
)
@click.option(
    "--grace-hours",
    type=click.FloatRange(min=0),
    default=DEFAULT_GRACE_HOURS,
    show_default=True,
    help="Keep archives younger than this: they may not be activated yet.",
)
@click.option("--yes", is_flag=True, help="Delete. Without it, only list what would be deleted.")
@json_option()
def prune_command(*, environment: str, history: int, grace_hours: float, yes: bool, as_json: bool) -> None:
    """Delete the archives of ENVIRONMENT that neither a release record nor its kept history refers to.

    With --yes, the AWS credentials must be of the environment's account. `tritonstack clean
    builds` deletes what builds keep on this machine; the next build makes it again.
    """
    settings = load_environment(environment_file(environment))
    session = session_of(settings)
    if yes:
        require_account(session, settings)
    pruning = Pruning(settings.environment, session=session)
    found = pruning.find(history=history, grace_hours=grace_hours)
    for item in () if as_json else found.unneeded:
        echo(f"s3://{found.bucket}/{item.archive_key}  {item.bytes:,} bytes")
    if yes:
        pruning.delete(found)
    if as_json:
        print_json(dataclasses.asdict(found) | {"removed": yes})
    verb = "removed" if yes else "would be removed (--yes removes them)"
    size = sum(item.bytes for item in found.unneeded)
    echo(f"{len(found.unneeded)} archives, {size:,} bytes {verb}; {found.kept} stay", err=True)
