"""New files put into the copy of a model folder: what users set in its configuration and recipe stays."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import yaml

from tritonstack.adapters import Adapters, Answers
from tritonstack.adding.additions import LOCK, PACKED, Addition, TritonModel
from tritonstack.adding.new_folder import release_python
from tritonstack.adding.python_packages import lock_packages
from tritonstack.adding.repository import ENVIRONMENT_PARAMETER
from tritonstack.adding.seeded_request import FreeLengths, body_text, seeded_tensor, write_body
from tritonstack.adding.trial import REPAIRED
from tritonstack.archives.programs import Report
from tritonstack.errors import listing
from tritonstack.lint import ServingTarget
from tritonstack.model_files.onnx_graph import OnnxError, external_data, read_graph
from tritonstack.models.digest import sha256_of
from tritonstack.models.model_config import EXECUTION_ENV_PATH, ConfigFile, ModelConfig, read_config
from tritonstack.models.model_view import view_model
from tritonstack.models.pbtxt import Message, to_text
from tritonstack.models.pbtxt_editing import with_fields
from tritonstack.models.recipe import RECIPE, read_recipe
from tritonstack.models.sample import read_sample
from tritonstack.models.source_files import CONFIG, model_directories
from tritonstack.models.tensorrt_models import TENSORRT
from tritonstack.naming import DIGEST_LENGTH
from tritonstack.paths import write_text
from tritonstack.untrusted.folder_files import text_inside
from tritonstack.untrusted.gzip_reading import suffix_of
from tritonstack.updating.contract import CallerChange, NextConfig, next_config
from tritonstack.updating.given_files import GivenFiles, Kind
from tritonstack.updating.model_copy import ModelCopy, newest_version


def place_files(
    work: ModelCopy, given: GivenFiles | None, *, own: bool, report: Report, target: ServingTarget | None
) -> tuple[dict[str, tuple[CallerChange, ...]], list[str]]:
    """Put the new files into the copy. Returns what changed of each Triton model, and further notes."""
    if given is None:
        return {}, []
    addition, notes = given.addition, list[str]()
    pairs = [(model.name, model) for model in addition.models]
    if len(addition.models) == 1:
        pairs = [(work.member, addition.models[0])]
    else:
        stays = {name for name, _ in pairs} | {name for used in work.recipe.uses for name in used.models}
        for gone in [path for path in model_directories(work.folder) if path.name not in stays]:
            shutil.rmtree(gone)
            notes.append(f"{gone.name}/ is removed: the new version has no such model")
    changes: dict[str, tuple[CallerChange, ...]] = {}
    for name, model in pairs:
        directory = work.folder / name
        if not (directory / CONFIG).is_file():
            _copy_files(directory, model.files)
            write_text(directory / CONFIG, model.config)
            notes.append(f"{name}/ is new")
            continue
        text = text_inside(directory / CONFIG, work.folder)
        following = _followed(work, directory, text, model, kind=given.kind, notes=notes)
        changes[name] = following.changes
        if not own or any(path.name == REPAIRED for path in model.files.values()):
            _replace_files(directory, model, is_file=given.kind == "file", report=report)
        if following.text != text:
            _rewrite(directory / CONFIG, following.text)
        if name == work.addressed and following.new_inputs:
            notes += _new_request(work, addition, read_config(following.text), following.new_inputs)
    if work.addressed in dict(pairs):
        notes += _client_files(work, addition)
        notes += _kept_for_clients(work, addition)
    for name, needed in addition.packages.items():
        of_model = name if name in dict(pairs) else work.member
        notes += _locked_packages(work, of_model)
        part = read_recipe(work.folder).environment_of(of_model, addressed=work.addressed)
        lock = work.folder / (part.requirements if part is not None else LOCK)
        before = lock.read_bytes() if lock.is_file() else b""
        lock.unlink(missing_ok=True)  # a link to the old folder's file
        if before:
            lock.write_bytes(before)  # whose versions stay where they may
        report(f"locking packages: {needed.origin}")
        notes.append(lock_packages(needed, python=release_python(target), target=lock))
    return changes, notes


_COMPARED_APART = ("name", "platform", "backend", "input", "output")


def _followed(
    work: ModelCopy, directory: Path, text: str, model: TritonModel, *, kind: Kind, notes: list[str]
) -> NextConfig:
    """The next version's configuration of one Triton model; ``notes`` gets what else of it differs."""
    new, where = read_config(model.config), f"{directory.name}/{CONFIG}"
    old = ConfigFile(file=str(directory / CONFIG), text=text).parsed()
    following = next_config(text, new=new, left_out=_left_out(directory, work.folder))
    if kind != "folder":
        return following
    given = ConfigFile(file=CONFIG, text=model.config).parsed()
    names = dict.fromkeys(each.name for each in (*old.fields, *given.fields) if each.name not in _COMPARED_APART)
    texts = {name: [to_text(Message(part.all(name), 1)) for part in (old, given)] for name in names}
    differ = {name: after for name, (before, after) in texts.items() if before != after}
    if not new.max_batch_size or not read_config(following.text).max_batch_size:
        differ.pop("max_batch_size", None)  # a row of what callers notice
    if EXECUTION_ENV_PATH in text and EXECUTION_ENV_PATH not in model.config:
        differ.pop("parameters", None)  # of a build that packs the environment
    taken = {name: differ.pop(name) for name in ("ensemble_scheduling",) if name in differ}  # the steps are the model
    if work.options.take_config:
        taken, differ = taken | differ, {}
    if taken:
        notes.append(f"{where}: {', '.join(taken)} as the new version has it")
        following = replace(following, text=with_fields(following.text, taken))
    if differ:
        notes.append(f"{where} keeps {', '.join(differ)}; the new version has it otherwise: --take-config takes that")
    return following


def _left_out(directory: Path, root: Path) -> frozenset[str]:
    """Outputs of the earlier graph that its configuration does not name."""
    view = view_model(directory, (), root=root)
    file = directory / newest_version(view) / (view.model_file or "-")
    if view.backend != "onnxruntime" or not file.is_file():
        return frozenset()
    try:
        graph = read_graph(file)
    except OnnxError:
        return frozenset()
    return frozenset(each.name for each in graph.outputs) - {each.name for each in view.config.outputs}


def _replace_files(directory: Path, model: TritonModel, *, is_file: bool, report: Report) -> None:
    """The new files in the place of the old ones. Files next to the versions stay, unless the new version has them.

    ``is_file``: the model is one file, with its external data: it takes the place of the version that is served.
    """
    view = view_model(directory, (), root=directory.parent)
    files = dict(model.files)
    if is_file:
        version, graph = newest_version(view), "model.onnx" if view.backend == TENSORRT else view.model_file
        for name in (graph, *_weights(directory / version / graph)):
            (directory / version / name).unlink(missing_ok=True)
        first = next(iter(files))  # the others are named by it
        named = {graph if name == first else name.partition("/")[2]: path for name, path in files.items()}
        files = {f"{version}/{name}": path for name, path in named.items()}
    else:
        for each in view.versions:
            shutil.rmtree(directory / each)
    report(f"copying {listing(sorted({path.name for path in files.values()}))}")
    _copy_files(directory, files)


def _weights(graph: Path) -> Iterable[str]:
    """Files of external data of an ONNX graph, inside its folder."""
    if graph.suffix != ".onnx" or not graph.is_file():
        return []
    try:
        return [name for name in external_data(graph) if ".." not in Path(name).parts and not Path(name).is_absolute()]
    except OnnxError:
        return []


def _copy_files(directory: Path, files: Mapping[str, Path]) -> None:
    for name, source in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # it may be a hard link to the old folder's file
        shutil.copy(source, path)


def _rewrite(path: Path, text: str) -> None:
    """Write a file of the copy, never into the old folder's file that it is a hard link to."""
    path.unlink()
    write_body(path, text)


_GENERIC_CLASSES = re.compile(r"LABEL_[0-9]+(\nLABEL_[0-9]+)*\n?")
"""The names that transformers gives to classes without one."""


def _client_files(work: ModelCopy, addition: Addition) -> Iterator[str]:
    """Put what clients need of the new version, its tokenizer and its classes' names, in the place of the old files."""
    for name, source in addition.client_files.items():
        path = work.folder / name
        if name not in work.recipe.client_files or not path.is_file():
            yield f"{RECIPE} has no client file {name}, which the new version has"
            continue
        content = source.read_bytes()
        if content == path.read_bytes() or _GENERIC_CLASSES.fullmatch(content.decode(errors="replace")):
            continue  # names that somebody gave to the classes stay
        path.unlink()
        path.write_bytes(content)
        yield f"{name} is the new version's"


def _kept_for_clients(work: ModelCopy, addition: Addition) -> Iterator[str]:
    """Fields of the recipe's adapters and answers that the new version's files state otherwise."""
    recipe = work.recipe
    pairs = [
        ("adapters", recipe.adapters.model_dump(), Adapters.model_validate(addition.adapters)),
        ("answers", recipe.answers.model_dump(), Answers.model_validate(addition.answers)),
    ]
    for of, kept, new in pairs:
        for kind, fields in new.model_dump(exclude_unset=True).items():
            for name, value in fields.items() if kept[kind] is not None else ():
                if value != kept[kind][name]:
                    yield f"{RECIPE} keeps {of}.{kind}.{name} {kept[kind][name]}; the new version's files say {value}"


def _new_request(work: ModelCopy, addition: Addition, config: ModelConfig, new: frozenset[str]) -> list[str]:
    """Seeded values for inputs that the sample request lacks, or has in another type or shape."""
    request = work.folder / work.recipe.sample.request
    if suffix_of(request) != ".json":
        return [f"{work.recipe.sample.request} stays: adapters in {RECIPE} have to fill {', '.join(sorted(new))}"]
    body = read_sample(work.folder, work.recipe, with_answer=False).body or {"inputs": []}
    kept = {each["name"]: each for each in body["inputs"]}
    batch = config.max_batch_size > 0
    rows = next((each["shape"][0] for name, each in kept.items() if batch and name not in new and each["shape"]), 1)
    lengths = replace(addition.lengths or FreeLengths(), first=rows) if batch else addition.lengths or FreeLengths()
    tensors = [
        kept[each.name]
        if each.name in kept and each.name not in new
        else seeded_tensor(
            each.name,
            each.data_type,
            lengths.shape(each.shape(config.max_batch_size)),
            values=addition.values.get(each.name),
        )
        for each in config.inputs
        if not each.optional or each.name in kept
    ]
    _rewrite(request, body_text("inputs", tensors))
    return [f"{work.recipe.sample.request} changes, too: new seeded values for {', '.join(sorted(new))}"]


def _locked_packages(work: ModelCopy, model: str) -> list[str]:
    """Let a build pack an environment of the lock file, where it has packed none so far."""
    now = read_recipe(work.folder)
    if now.environment_of(model, addressed=work.addressed) is not None:
        return []
    recipe = text_inside(work.folder / RECIPE, work.folder).rstrip()
    lock = f"requirements-{model}.txt" if now.environments else LOCK
    own = {"requirements": lock, "packed_as": PACKED} | ({} if model == work.addressed else {"model": model})
    others = [each.model_dump(exclude_none=True) for each in now.environments]
    for field in ("execution_environment", "execution_environments"):  # a list from the second one on
        recipe = re.sub(rf"(?m)^{field}:.*\n(?:[ \t-].*\n)*", "", recipe + "\n").rstrip()
    field = "execution_environments" if others else "execution_environment"
    made = yaml.safe_dump({field: [*others, own] if others else own}, sort_keys=False, width=120)
    recipe += f"\n{made}"
    if work.recipe.dependency == "none":
        recipe = "\n".join(line for line in recipe.splitlines() if not line.startswith("dependency:"))
        recipe += "\ndependency: python\n"
    _rewrite(work.folder / RECIPE, recipe)
    path = work.folder / model / CONFIG
    text = text_inside(path, work.folder)
    if EXECUTION_ENV_PATH not in text:
        _rewrite(path, f"{text.rstrip()}\n\n{ENVIRONMENT_PARAMETER}")
    return [f"{RECIPE} and {model}/{CONFIG} name the environment of its packages"]


def renew_stored_files(work: ModelCopy, folder: str) -> list[str]:
    """State the hashes of new files that lie in S3, and keys that no earlier version has. Returns what is to upload."""
    notes: list[str] = []
    before = text = text_inside(work.folder / RECIPE, work.folder)
    for name, stored in work.recipe.files.items():
        path = work.folder / name
        if not path.is_file():
            continue  # a build downloads it
        digest = sha256_of(path)
        if digest == stored.sha256:
            continue
        old, new = stored.sha256[:DIGEST_LENGTH], digest[:DIGEST_LENGTH]
        parent, _, last = stored.s3.rpartition("/")
        place = stored.s3.replace(old, new) if old in stored.s3 else f"{parent}/{new}/{last}"
        text = text.replace(stored.s3, place).replace(stored.sha256, digest)
        notes.append(f"{RECIPE} has its new hash; upload it: aws s3 cp {shlex.quote(f'{folder}/{name}')} {place}")
    if text != before:
        _rewrite(work.folder / RECIPE, text)
    return notes
