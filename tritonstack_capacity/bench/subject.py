"""Subjects of measurements: an endpoint's model, its configurations (overlays of one model folder), the payload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from botocore.exceptions import BotoCoreError, ClientError

from tritonstack.client.body import Array, Body, encode
from tritonstack.client.errors import InvokeTarget
from tritonstack.client.inputs import InputFile, read_inputs, requested_outputs
from tritonstack.client.model_client import ModelClient
from tritonstack.client.releases import ModelRelease
from tritonstack.client.streaming import generate_body
from tritonstack.errors import InputError, Problem, refuse
from tritonstack.models.manifest import ModelEntry, SampleEntry
from tritonstack.models.recipe import Recipe, read_recipe
from tritonstack.models.sample import request_arrays


@dataclass(frozen=True, kw_only=True)
class BenchTarget:
    """One model behind an endpoint; the endpoint's facts are None without the permission to describe it."""

    name: str  # as the person named it
    release: ModelRelease  # its current archive
    call: InvokeTarget  # how InvokeEndpoint names it
    variant: str | None = None
    instance_type: str | None = None
    instance_count: int | None = None
    image: str | None = None


def find_target(client: ModelClient, session: Any, *, name: str) -> BenchTarget:
    """The target of a name. Raises what ``ModelClient.target`` and :func:`describe_endpoint` raise."""
    call = client.target(name)
    target = BenchTarget(name=name, release=client.resolve(name), call=call)
    try:
        described, variant, model = describe_endpoint(session.client("sagemaker"), call.endpoint_name)
    except (ClientError, BotoCoreError):
        return target
    containers = [model["PrimaryContainer"]] if "PrimaryContainer" in model else model.get("Containers", [])
    live = (described.get("ProductionVariants") or [{}])[0]
    return replace(
        target,
        variant=variant.get("VariantName"),
        instance_type=variant.get("InstanceType"),
        instance_count=live.get("CurrentInstanceCount", variant.get("InitialInstanceCount")),
        image=containers[0].get("Image") if containers else None,
    )


def describe_endpoint(sagemaker: Any, endpoint: str) -> tuple[Any, Any, Any]:
    """An endpoint, its configuration's production variant, and that variant's model, as SageMaker describes them.

    Raises InputError where several variants share the requests.
    """
    described = sagemaker.describe_endpoint(EndpointName=endpoint)
    config = sagemaker.describe_endpoint_config(EndpointConfigName=described["EndpointConfigName"])
    variant, *others = config["ProductionVariants"]
    if others:
        names = ", ".join(each["VariantName"] for each in config["ProductionVariants"])
        allowed = "one variant: what is measured is one model on one fleet"
        advice = "Give a variant's model an endpoint of its own while it is measured."
        raise InputError([Problem(field=endpoint, found=f"requests shared by {names}", allowed=allowed, advice=advice)])
    return described, variant, sagemaker.describe_model(ModelName=variant["ModelName"])


Format = Literal["binary", "json"]
FORMATS: tuple[Format, ...] = ("binary", "json")


@dataclass(frozen=True, kw_only=True)
class Payload:
    """A request's inputs, and the requested outputs (None for all)."""

    inputs: dict[str, Array]
    outputs: tuple[str, ...] | None
    source: str

    def body(self, payload_format: Format) -> Body:
        """The request in one format, for both ways. Raises InputError where JSON cannot carry it."""
        return encode(self.inputs, outputs=self.outputs, payload_format=payload_format)


def payload_of(client: ModelClient, name: str, *, files: Sequence[str], outputs: Sequence[str]) -> Payload:
    """The content of ``files``, else the sample of the model's manifest.

    Raises InputError: nothing to send, or what the model would not take; WorkFailedError: a client file cannot be had.
    """
    table = client.tensor_table(name)
    if files:
        inputs = read_inputs([InputFile.parse(file) for file in files], table, fetch=client.client_files)
        source = ", ".join(Path(file).name for file in files)
    else:
        manifest = client.manifest(name)
        if manifest is None or table is None:
            found = f"{name}, whose manifest this caller cannot read"
            raise InputError([Problem(field="--input", found=found, allowed="--input FILE")])
        sample = SampleEntry.model_validate(manifest["sample"])
        adapter = table.adapters.of(sample.adapter) if sample.adapter else None
        inputs = request_arrays(
            sample,
            adapters=table.adapters,
            model=ModelEntry.model_validate(manifest["model"]),
            files={} if adapter is None else client.client_files(table, adapter.files),
            file=sample.file,
        )
        source = f"the sample of the recipe ({sample.file})"
    if table is not None and (problems := table.problems(inputs, outputs)):
        raise InputError(problems)
    wanted = requested_outputs(table, outputs)
    return Payload(inputs=inputs, outputs=None if wanted is None else tuple(wanted), source=source)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One row of the tables, for each load."""

    configuration: str  # how tables call it
    target: BenchTarget  # who is called
    payload: Payload  # with what
    payload_format: Format  # in which format
    manifest: Any  # of the archive; None where this caller cannot read it
    streams: bool = False  # whether its responses are streams of events

    @property
    def body(self) -> Body:
        """The request. Raises InputError where its format cannot carry it."""
        return generate_body(self.payload.inputs, {}) if self.streams else self.payload.body(self.payload_format)

    @property
    def title(self) -> str:
        """Title for people."""
        return f"{self.configuration} ({self.payload_format})"


WORDS: dict[str, frozenset[str]] = {
    "plain": frozenset(),
    "dynamic-batching": frozenset({"dynamic-batching"}),
    "two-instances": frozenset({"two-instances"}),
    "both": frozenset({"dynamic-batching", "two-instances"}),
}
"""The published load test's four configurations: word → fragments of ``config.pbtxt`` that an overlay adds, by their
files' names. An overlay's other fragments (``tensorrt.pbtxt``: what makes it run elsewhere) do not count."""
_FRAGMENTS = frozenset({"group-on-gpu-0"}).union(*WORDS.values())
"""Those that count: an overlay with a group on one GPU has no word, and is chosen by its name."""


def configured_names(name: str, configurations: Sequence[str], *, model_repos: Path) -> dict[str, str]:
    """Configuration → the model's name for it, in the given order.

    Args:
        name: ``[endpoint/]folder``.
        configurations: names of overlays, or the words of ``WORDS``, which select every overlay that is so
            configured (``dynamic-batching`` is ``pytorch-db`` and ``tensorrt-db`` of ``bert-large``).
        model_repos: the parent of the folder.

    Raises:
        InputError: no such folder, a folder without overlays, or words that name none of them; all at once.
    """
    endpoint, slash, folder = name.rpartition("/")
    if not (model_repos / folder / "recipe.yaml").is_file():
        found = f"--configurations, and no folder {folder} in {model_repos}"
        raise InputError([Problem(field=name, found=found, allowed="a model folder whose recipe has overlays")])
    recipe = read_recipe(model_repos / folder)
    if not recipe.overlays:
        raise InputError([Problem(field=name, found="a recipe without overlays", allowed="one with overlays")])
    found_names: dict[str, str] = {}
    problems = []
    for word in configurations:
        overlays = [word] if word in recipe.overlays else _meant(recipe, word)
        found_names |= {overlay: f"{endpoint}{slash}{folder}-{overlay}" for overlay in overlays}
        if not overlays:
            allowed = f"{', '.join(recipe.overlays)}; or {', '.join(WORDS)}, where an overlay is that"
            problems.append(Problem(field="--configurations", found=f"{word}, which {folder} has not", allowed=allowed))
    refuse(problems)
    return found_names


def _meant(recipe: Recipe, word: str) -> list[str]:
    wanted = WORDS.get(word)
    if wanted is None:
        return []
    stems = {name: frozenset(Path(file).stem for file in one.config) for name, one in recipe.overlays.items()}
    return [name for name, found in stems.items() if found & _FRAGMENTS == wanted]
