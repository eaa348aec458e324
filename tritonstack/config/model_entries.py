"""Adds models to an endpoint in the text of an environment file, or removes them; comments, order and quotes stay."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import yaml

from tritonstack.catalogue import load_catalogue
from tritonstack.config.endpoint import EndpointSettings
from tritonstack.config.environment import Environment
from tritonstack.config.loader import load_environment
from tritonstack.config.yaml_loader import YamlError, parse_yaml
from tritonstack.errors import InputError, Problem
from tritonstack.paths import write_text


@dataclass(frozen=True, kw_only=True)
class ModelEntries:
    """Models to add to an endpoint's entry in an environment file."""

    file: Path
    endpoint: str
    added: tuple[str, ...]  # those that it lacked
    text: str | None  # the file's content with them; None where it cannot be changed without changing anything else
    variant: str | None = None  # the production variant that serves it next to the endpoint's one model

    @property
    def by_hand(self) -> str:
        """What to write into the file by hand."""
        where = "at the end of `models:`" if self.variant is None else f"as {self.variant} of two `variants:`"
        return f"{', '.join(self.added)} {where} of endpoint {self.endpoint}"

    def lines(self) -> Iterator[str]:
        """The lines that change, each with its place in the file; without a text, what to write by hand."""
        if self.text is None:
            yield self.by_hand
            return
        before, after = self.file.read_bytes().decode().splitlines(), self.text.splitlines()
        for kind, _, _, begins, ends in SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes():
            if kind in ("replace", "insert"):
                where = f"line {begins + 1}" if kind == "replace" else f"after line {begins}"
                yield from (f"{where}: {line}" for line in after[begins:ends])

    def write(self) -> None:
        """Change the file. Raises :class:`InputError` where its settings would break a rule, or the text is None."""
        if self.text is None:
            found = "models that other places share (an anchor, an alias), or YAML of an unusual form"
            advice = f"write it by hand: {self.by_hand}"
            raise InputError([Problem(file=str(self.file), found=found, allowed="a list of its own", advice=advice)])
        load_environment(self.file, text=self.text)
        write_text(self.file, self.text)


@dataclass(frozen=True, kw_only=True)
class ModelRemoval:
    """Models to remove from every endpoint of an environment file."""

    file: Path
    environment: Environment  # as the file is now
    removed: Mapping[str, tuple[str, ...]]  # endpoint → its models that go
    emptied: tuple[str, ...]  # endpoints that serve nothing else, and go with them
    text: str | None  # the file's content without them; None where it cannot be changed without changing anything else

    def refused(self, *, emptied_too: bool, advice: str) -> list[Problem]:
        """Why the file cannot be changed so. ``emptied_too``: endpoints without a model go; ``advice``: otherwise."""
        endpoints = {each.name: each for each in self.environment.endpoints}
        problems = []
        for name, models in self.removed.items():
            if endpoints[name].variants:
                found = f"{', '.join(models)} is one of its two variants"
                what = "write `models` with the other one in their place first: tritonstack docs updates#two-variants"
                problems.append(Problem(file=str(self.file), field=name, found=found, allowed="one", advice=what))
            elif name in self.emptied and not emptied_too:
                found, allowed = f"{', '.join(models)} alone", "an endpoint with at least one model"
                problems.append(Problem(file=str(self.file), field=name, found=found, allowed=allowed, advice=advice))
        if self.text is None and not problems:
            names = "; ".join(f"{', '.join(models)} of {name}" for name, models in self.removed.items())
            found, allowed = "YAML of an unusual form", "a list of its own for each endpoint"
            problems.append(
                Problem(file=str(self.file), found=found, allowed=allowed, advice=f"remove it by hand: {names}")
            )
        return problems


def model_removal(file: Path, models: Collection[str]) -> ModelRemoval:
    """The change that removes models from a file; ``removed`` is empty where no endpoint names one.

    Raises :class:`InputError` where the file is wrong.
    """
    text = file.read_bytes().decode()
    environment = load_environment(file, text=text)
    removed = {
        each.name: tuple(name for name in each.models if name in models)
        for each in environment.endpoints
        if set(each.models) & set(models)
    }
    emptied = tuple(each.name for each in environment.endpoints if removed.get(each.name) == each.models)
    found: str | None = text
    if removed:
        document = parse_yaml(text).value
        document["endpoints"] = [each for each in document["endpoints"] if each.get("name") not in emptied]
        for each in document["endpoints"]:
            if each["name"] in removed and "models" in each:
                each["models"] = [name for name in each["models"] if name not in models]
        changed = _without(text, models, emptied)
        try:
            found = changed if parse_yaml(changed).value == document else None
        except YamlError:
            found = None
    return ModelRemoval(file=file, environment=environment, removed=removed, emptied=emptied, text=found)


def _without(text: str, models: Collection[str], emptied: Collection[str]) -> str:
    """The text without these entries of `models:`, and without these endpoints."""
    root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    endpoints = next(value for key, value in root.value if key.value == "endpoints")
    own = {id(each): {key.value: value for key, value in each.value} for each in endpoints.value}
    gone = [each for each in endpoints.value if own[id(each)]["name"].value in emptied]
    cuts: set[tuple[int, int]] = set()
    if len(gone) == len(endpoints.value):
        start = endpoints.start_mark.index
        begins = start if endpoints.flow_style else text.rfind(":", 0, start) + 1
        changed = f"{text[:begins]}{'' if endpoints.flow_style else ' '}[]{text[_last(endpoints) :]}"
        return changed if changed.endswith("\n") else f"{changed}\n"
    for each in endpoints.value:
        if each in gone:
            cuts.add(_cut(text, endpoints, each))
            continue
        listed = own[id(each)].get("models")
        if isinstance(listed, yaml.SequenceNode):
            cuts |= {_cut(text, listed, entry) for entry in listed.value if entry.value in models}
    for begins, ends in sorted(cuts, reverse=True):
        text = text[:begins] + text[ends:]
    return text


def _cut(text: str, listed: Any, entry: Any) -> tuple[int, int]:
    """Where an entry of a list begins and ends, with its separator, or its lines where each entry has its own."""
    at = listed.value.index(entry)
    if listed.flow_style:
        if at:
            return listed.value[at - 1].end_mark.index, entry.end_mark.index
        following = listed.value[1:2]
        return entry.start_mark.index, following[0].start_mark.index if following else entry.end_mark.index
    dash = text.rfind("-", 0, entry.start_mark.index)
    ends = text.find("\n", _last(entry))
    return text.rfind("\n", 0, dash) + 1, len(text) if ends < 0 else ends + 1


def _last(node: Any) -> int:
    """Where the last value of a node ends; a block's own end is behind the comments that follow it."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return int(node.end_mark.index)


def endpoint_for_models(
    file: Path, *, name: str | None, as_variant: bool = False
) -> tuple[Environment, EndpointSettings]:
    """The environment, and its endpoint that takes models: ``name``, else the only one in multi-model mode.

    ``as_variant``: one in single-model mode, which takes the model as its second variant. An environment with
    ``endpoints: []`` gives the endpoint that :func:`model_entries` writes. Raises :class:`InputError` where the file is
    wrong, has no such endpoint, or has several to choose from.
    """
    if not as_variant and _has_no_endpoint(file):
        text = _with_endpoint(file.read_bytes().decode(), name or NEW_NAME, ("model",))
        environment = load_environment(file, text=text)
        return environment, environment.endpoints[0]
    environment = load_environment(file)
    known = {endpoint.name: endpoint for endpoint in environment.endpoints}
    taking = [name for name, each in known.items() if each.multi_model != as_variant and not each.variants]
    if name in taking or (name is None and len(taking) == 1):
        return environment, known[name or taking[0]]
    wanted = "`mode: single-model` and `models`" if as_variant else "`mode: multi-model`"
    allowed = f"--endpoint with one of {', '.join(taking)}" if taking else f"an endpoint with {wanted}"
    if name is None:
        found = f"{'several endpoints' if taking else 'no endpoint'} with {wanted}"
    elif name in known:
        found = f"endpoint {name} {'with two variants' if known[name].variants else f'in {known[name].mode} mode'}"
        if not as_variant and not known[name].variants:
            allowed += ", or --variant NAME: a second production variant in addition to its model"
    else:
        found = f"no endpoint {name}"
    raise InputError([Problem(file=str(file), field="endpoints", found=found, allowed=allowed)])


def lines_to_add(file: Path, models: Sequence[str]) -> Iterator[str]:
    """Lines of YAML that put models onto an endpoint of a file in which none was chosen for them.

    Those of each multi-model endpoint that it has; of a new one where it has none, or cannot be read.
    """
    try:
        taking = [each.name for each in load_environment(file).endpoints if each.multi_model]
        entries = [model_entries(file, endpoint=name, models=models) for name in taking]
    except InputError:
        entries = []
    for index, each in enumerate(entries):
        yield f"{'or ' if index else ''}endpoint {each.endpoint}:"
        yield from (f"  {line}" for line in each.lines())
    if not entries:
        yield "at the end of `models:` of an endpoint with `mode: multi-model`, or as a new one:"
        text = file.read_bytes().decode(errors="replace") if file.is_file() else ""
        yield from f"endpoints:{_new_endpoint(text, NEW_NAME, models)}".splitlines()


def model_entries(file: Path, *, endpoint: str, models: Sequence[str], variant: str | None = None) -> ModelEntries:
    """The change that puts models, or one as a ``variant``, onto an endpoint of :func:`endpoint_for_models`."""
    text = file.read_bytes().decode()
    if _has_no_endpoint(file):
        after = _with_endpoint(text, endpoint, models)
        return ModelEntries(file=file, endpoint=endpoint, added=tuple(models), text=after)
    document = parse_yaml(text).value
    index = [each.get("name") for each in document["endpoints"]].index(endpoint)
    has = document["endpoints"][index].pop("models")
    added = tuple(name for name in dict.fromkeys(models) if name not in has)
    wanted: dict[str, Any] = {"models": [*has, *added]}
    if variant is not None:
        new = {"name": variant, "model": added[0], "weight": 0}  # for requests that name it, until it gets a share
        wanted = {"variants": [{"name": CURRENT, "model": has[0], "weight": 1}, new]}
    changed = _inserted(text, index, added, variants=wanted.get("variants", ())) if added else text
    try:
        found = parse_yaml(changed).value if changed is not None else None
    except YamlError:
        found = None
    document["endpoints"][index] |= wanted
    right = changed if found == document else None
    return ModelEntries(file=file, endpoint=endpoint, added=added, text=right, variant=variant)


CURRENT = "current"
"""The production variant that an endpoint's model becomes when a second one comes beside it."""
NEW_NAME = "models"
NEW_TYPE = "ml.g4dn.xlarge"
_NEW_ENDPOINT = """
  - name: {name}
    mode: multi-model
    release: "{release}"    # {why}
    instance_type: {type}
    models: [{models}]"""
_REGION = re.compile(r"^region:[ \t]*[\"']?([a-z0-9-]+)", re.MULTILINE)
_NO_ENDPOINT = re.compile(r"^endpoints:[ \t]*(\[[ \t]*\])", re.MULTILINE)


def _has_no_endpoint(file: Path) -> bool:
    """Whether the file has ``endpoints: []``; False where it is none that can be read."""
    try:
        return bool(_NO_ENDPOINT.search(file.read_bytes().decode()))
    except (OSError, UnicodeDecodeError):
        return False


def _with_endpoint(text: str, name: str, models: Sequence[str]) -> str:
    """The text with a first endpoint in place of the empty list."""
    endpoint = _new_endpoint(text, name, models)
    return _NO_ENDPOINT.sub(lambda _: f"endpoints:{endpoint}", text, count=1)


def _new_endpoint(text: str, name: str, models: Sequence[str]) -> str:
    """The entry of a new endpoint; its release has an image in the region of the file's text."""
    catalogue = load_catalogue()
    instance, named = catalogue.instance(NEW_TYPE), _REGION.search(text)
    region = named[1] if named and named[1] in catalogue.regions else None
    release = catalogue.default_release(region=region, instance=instance) or catalogue.default_release() or ""
    row, ami = catalogue.release(release), catalogue.propose_host_ami(release, instance=instance)
    why = "the newest with an image of AWS's"
    if row is not None and ami is not None and not ami.covers(row):
        why += f"; unproved on a GPU: its CUDA {row.cuda} on driver {ami.driver} (CUDA {ami.cuda})"
    return _NEW_ENDPOINT.format(name=name, release=release, why=why, type=NEW_TYPE, models=", ".join(models))


def _inserted(text: str, index: int, names: Sequence[str], *, variants: Sequence[Mapping[str, Any]] = ()) -> str | None:
    """The text with the names at the end of the endpoint's list; None where it has no list of its own.

    ``variants``: written in place of that list, a line each.
    """
    root: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    endpoints = next((value for key, value in root.value if key.value == "endpoints"), None)
    own = {key.value: (key, value) for key, value in endpoints.value[index].value} if endpoints is not None else {}
    key, listed = own.get("models", (None, None))
    if not isinstance(listed, yaml.SequenceNode) or not listed.value:
        return None
    last, line_end = listed.value[-1], "\r\n" if "\r\n" in text else "\n"
    if variants:
        end = (listed if listed.flow_style else last).end_mark.index
        begins = line_end + " " * (key.start_mark.column + 2)
        lines = (", ".join(f"{name}: {value}" for name, value in each.items()) for each in variants)
        inserted = "".join(f"{begins}- {{{line}}}" for line in lines)
        return f"{text[: key.start_mark.index]}variants:{inserted}{text[end:]}"
    if listed.flow_style:
        place, inserted = last.end_mark.index, "".join(f", {name}" for name in names)
    else:  # a line each, as the last one begins
        begins = text[text.rfind("\n", 0, last.start_mark.index) + 1 : last.start_mark.index]
        end = text.find(line_end, last.end_mark.index)
        place = len(text) if end < 0 else end
        inserted = "".join(f"{line_end}{begins}{name}" for name in names)
    return text[:place] + inserted + text[place:]
