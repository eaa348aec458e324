"""The app of a project: one stage for each file under environments/, or those that ``-c environments=dev,prod`` names.

``-c pipeline=true`` makes the pipeline of ``pipeline.yaml`` and its environments instead (``-c pipeline=<file>``: of
another file); see docs/pipeline.md.

Synthesis reads files of the project alone: no credentials, no network, no clock, no randomness. Two more context
values move those files: ``-c environments-folder=…`` and ``-c model-repositories=…`` (from the working directory).

The first import of this module starts Node: an ``app.py`` imports it before anything else that takes time.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tritonstack.errors import InputError, Problem, collecting, refuse
from tritonstack.extensions import not_installed, require_modules

try:
    require_modules("aws_cdk", "constructs", "cdk_nag")
except ModuleNotFoundError as error:
    print(not_installed(error.name or ""), file=sys.stderr)  # noqa: T201 - this is a command
    sys.exit(InputError.exit_code)
# Set before aws_cdk starts Node: its long warning about Node 20 on stderr would hide what a user has to fix.
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")
gc.disable()  # the process runs for a second and keeps all its objects: collecting them would take a tenth of it
# Node loads the CDK and cdk-nag, which this process would only wait for, while Python makes the settings' models.
loading = ThreadPoolExecutor(max_workers=1)
cdk_loaded = loading.submit(importlib.import_module, "aws_cdk")
if os.environ.get("CDK_VALIDATION") != "false":
    loading.submit(importlib.import_module, "cdk_nag")

from tritonstack.cloudformation.limits import exceeded
from tritonstack.config import Environment, load_environment, load_environments
from tritonstack.config.pipeline import PIPELINE_FILE
from tritonstack.deployed.physical_names import refuse_names_of_others
from tritonstack.served import all_served

cdk_loaded.result()
import aws_cdk as cdk
from aws_cdk import cx_api

from .stage import EnvironmentStage

loading.shutdown()  # from here on this thread alone talks to Node, which takes one request at a time


RESOURCE_LIMIT = "@aws-cdk/core:stackResourceLimit"
"""Context: the most resources that the CDK allows in a stack; 0: any number."""


def main(*, root: Path) -> int:
    """Synthesise the project in ``root``: its ``environments/``, ``model_repos/`` and ``pipeline.yaml``.

    Returns 0, or 2 after messages on stderr where an input is wrong; then nothing is synthesised.
    """
    # Stack traces of notes would name jsii's temporary folders: other bytes in every process.
    # The CDK counts resources alone, and fails with a traceback: refused_for_size has the message.
    own = {RESOURCE_LIMIT: 0}
    app = cdk.App(analytics_reporting=False, stack_traces=False, context=own)
    models = Path(app.node.try_get_context("model-repositories") or root / "model_repos")
    folder = Path(app.node.try_get_context("environments-folder") or root / "environments")
    chosen = app.node.try_get_context("pipeline")
    environments: Sequence[Environment]
    try:
        if chosen is None or str(chosen).lower() == "false":
            environments = chosen_environments(folder=folder, names=app.node.try_get_context("environments"))
            refuse_names_of_others(environments, folder=folder, pipelines=[root / PIPELINE_FILE])
            files = [(each, folder / f"{each.environment}.yaml") for each in environments]
            for served in all_served(files, models):
                EnvironmentStage.from_served(app, served, models=models)
        else:
            from .pipeline import add_pipeline  # noqa: PLC0415 - CDK Pipelines' types, which environments do not need

            loaded = add_pipeline(app, chosen=str(chosen), root=root, models=models, folder=folder)
            environments = [stage.environment for stage in loaded.stages]
            pipelines = [root / PIPELINE_FILE, root / str(chosen)]  # which is a file's name, or ``true``
            refuse_names_of_others(environments, folder=folder, pipelines=pipelines)
    except InputError as error:
        print(error, file=sys.stderr)  # noqa: T201 - this is a command
        return InputError.exit_code
    exempt = {environment.environment for environment in environments if not environment.production}
    check_with_nag(app, nist=len(exempt) < len(environments), exempt=exempt)
    return refused_for_size(app.synth())


def refused_for_size(assembly: cx_api.CloudAssembly) -> int:
    """Print every limit of AWS that a template of the assembly exceeds; returns 2, or 0 where there is none."""
    problems = []
    for stack in assembly.stacks_recursively:
        text = Path(stack.template_full_path).read_bytes()
        for each in exceeded(json.loads(text), size=len(text), stack=stack.stack_name):
            place = f"{each.limit}: {each.of}" if each.of else each.limit
            allowed = f"{each.allowed} ({each.source})"
            problems.append(
                Problem(file=stack.stack_name, field=place, found=str(each.found), allowed=allowed, advice=each.advice)
            )
    if problems:
        print(InputError(problems), file=sys.stderr)  # noqa: T201 - this is a command
        return InputError.exit_code
    return 0


def chosen_environments(*, folder: Path, names: str | None) -> tuple[Environment, ...]:
    """The environments that ``names`` (comma-separated) chooses, in the order of their names; None chooses all.

    Raises:
        InputError: a name without a file, or wrong settings; files that were not chosen are not read.
    """
    if names is None:
        return load_environments(folder)
    known = sorted(path.stem for path in folder.glob("*.yaml"))
    allowed = f"names of files in {folder}: {', '.join(known) or 'none'}"
    wanted = sorted({name.strip() for name in names.split(",")})
    environments: list[Environment] = []
    problems: list[Problem] = []
    for name in wanted:
        if name not in known:
            problems.append(Problem(field="-c environments", found=name or "no name", allowed=allowed))
            continue
        with collecting(problems):
            environments.append(load_environment(folder / f"{name}.yaml"))
    refuse(problems)
    return tuple(environments)


def check_with_nag(app: cdk.App, *, nist: bool = True, exempt: Collection[str] = ()) -> None:
    """Have cdk-nag check every template by AwsSolutions and NIST 800-53 R5, as validation plug-ins: a finding fails.

    Called when all stages are made: acknowledges the accepted NIST findings on each construct that exists. Stages of
    environments without ``production`` are ``exempt`` from NIST's; an app of such environments alone leaves it out
    (``nist=False``), which takes half a second.

    ``CDK_VALIDATION=false``, which switches CDK's own validation off, switches this off too: for repeated runs on one
    commit, of which one with validation is enough.
    """
    if os.environ.get("CDK_VALIDATION") != "false":
        import cdk_nag  # noqa: PLC0415 - a tenth of a second that runs without validation need not pay

        cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks(app))
        if not nist:
            return
        from constructs_lib.acknowledgement import acknowledge_nist  # noqa: PLC0415 - as cdk-nag

        from .nist_checks import NistChecks  # noqa: PLC0415 - as cdk-nag

        scopes = [each for each in app.node.children if each.node.id not in exempt]
        cdk.Validations.of(app).add_plugins(NistChecks(scopes))
        for stage in scopes:
            if isinstance(stage, cdk.Stage):
                acknowledge_nist(stage)
