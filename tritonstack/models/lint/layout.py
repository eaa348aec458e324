"""Rules about the archive's layout: what SageMaker makes of the directories, in both of its modes.

Source: server src/sagemaker_server.cc (SageMakerMMELoadModel) and docker/sagemaker/serve.
"""

from __future__ import annotations

from collections.abc import Iterator

from tritonstack.models.folder import CONFIG, is_junk
from tritonstack.models.lint.finding import Finding
from tritonstack.models.lint.place import at_field, at_line
from tritonstack.models.lint.view import RepositoryView

MANY_DIRECTORIES = 5

OUTSIDE_MODELS = ("sample", "warmup", "tests", "overlays")
"""Folders beside the models that a model folder may have; they are not packed."""


def check(view: RepositoryView) -> Iterator[Finding]:
    """What is wrong with the directories of an archive."""
    yield from _root(view)
    if not view.models:
        allowed = "<model>/config.pbtxt"
        yield Finding(file=view.root, rule="no-model", found="no directory with a config.pbtxt", allowed=allowed)
        return
    yield from _ensembles_as_seen(view)
    yield from _served(view)
    yield from _single_model(view)
    if len(view.models) > MANY_DIRECTORIES:
        found = f"{len(view.models)} models in one archive"
        allowed = f"up to {MANY_DIRECTORIES}; SageMaker's front end logs a warning above that"
        yield Finding(file=view.root, rule="many-directories", found=found, allowed=allowed)


def _root(view: RepositoryView) -> Iterator[Finding]:
    if (view.root / CONFIG).is_file():
        yield Finding(
            file=view.root / CONFIG,
            rule="config-at-root",
            found="config.pbtxt at the root of the archive",
            allowed="<model>/config.pbtxt",
            advice="a single-model endpoint refuses it, and it hides every model directory",
        )
    for path in sorted(view.root.iterdir()):
        expected = {*view.models, *(OUTSIDE_MODELS if view.recipe else ())}
        if path.is_dir() and path.name not in expected and not is_junk(path.name):
            yield Finding(
                file=path,
                rule="directory-without-config",
                found=f"a directory without {CONFIG}",
                allowed="model directories: SageMaker's front end takes every directory for a model",
                advice="" if view.recipe else f"a recipe.yaml would leave {', '.join(OUTSIDE_MODELS)} out",
            )


def _ensembles_as_seen(view: RepositoryView) -> Iterator[Finding]:
    """Where the front end, which searches the text, and Triton, which reads the field, differ."""
    for model in view.models.values():
        if model.is_ensemble and not model.sagemaker_sees_ensemble:
            advice = "without it an archive with several models serves an arbitrary one of them"
            line = model.config.node.line_of("platform")
            found = "an ensemble that SageMaker's front end does not see"
            yield at_line(model, line, "ensemble-literal", found, 'platform: "ensemble", written so', advice)
        elif model.sagemaker_sees_ensemble and not model.is_ensemble:
            found = 'the text platform: "ensemble" in a model that is none'
            allowed = "that text in ensembles only, comments included"
            yield at_field(model, "name", "ensemble-mistaken", found, allowed)


def _served(view: RepositoryView) -> Iterator[Finding]:
    """Which model requests reach: the ensemble, else the only one."""
    names = ", ".join(sorted(view.models))
    ensembles = [model.name for model in view.ensembles]
    reached = ensembles or sorted(view.models)
    if len(ensembles) > 1:
        found = f"{len(ensembles)} ensembles: {', '.join(ensembles)}"
        allowed = 'one model with platform: "ensemble"; which of several is served is arbitrary'
        yield Finding(file=view.root, rule="several-ensembles", found=found, allowed=allowed)
    elif len(view.models) > 1 and not ensembles:
        yield Finding(
            file=view.root,
            rule="several-models-no-ensemble",
            found=f"several models and no ensemble: {names}",
            allowed='one model, or one with platform: "ensemble" that uses the others',
            advice="without it, which model is served is arbitrary",
        )
    elif view.addressed is not None and view.addressed != reached[0] and view.addressed in view.models:
        found = f"requests shall reach {view.addressed}, SageMaker serves {reached[0]}"
        allowed = "the only model, or the only ensemble, as the one that the recipe names"
        yield Finding(file=view.root, rule="addressed-model", found=found, allowed=allowed)


def _single_model(view: RepositoryView) -> Iterator[Finding]:
    """Single-model mode: the serve script takes the only directory, or the one that a variable names."""
    target = view.target
    if target.multi_model is not False:
        return
    ensembles = [model for model in view.models.values() if model.config.is_ensemble]
    named = target.names_ensemble and len(ensembles) == 1
    if target.default_model is None and len(view.models) > 1 and not named:
        found = f"{len(view.models)} models, and {target.name} names none to serve"
        allowed = f"container.default_model_name: {view.served or 'one of them'}"
        yield Finding(file=view.root, rule="default-model", found=found, allowed=allowed)
    elif target.default_model is not None and target.default_model not in view.models:
        found = f"{target.name} serves {target.default_model}, which is not in the archive"
        yield Finding(file=view.root, rule="default-model", found=found, allowed=", ".join(sorted(view.models)))
