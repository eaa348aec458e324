"""A model's next version: new files in the place of the old ones, what users set kept, the response recorded anew."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import yaml

from tritonstack.adding.additions import (
    LOCK,
    NO_CODE,
    PACKED,
    SUPPORTED,
    TENSOR_FORM,
    TOLERANCE,
    Addition,
    AddOptions,
    TritonModel,
    runs_code,
)
from tritonstack.adding.contract import CallerChange, NextConfig, next_config
from tritonstack.adding.new_folder import Recorded, record_sample, release_python
from tritonstack.adding.python_packages import REQUIREMENTS, STATED, lock_packages
from tritonstack.adding.repository import ENVIRONMENT_PARAMETER
from tritonstack.adding.seeded_request import FreeLengths, body_text, seeded_tensor, write_body
from tritonstack.adding.sources import read_source
from tritonstack.adding.torchscript_model import ENVIRONMENT
from tritonstack.adding.trial import REPAIRED
from tritonstack.archives.programs import Report, has_environment
from tritonstack.disk import exchange, link_or_copy, partial_folder
from tritonstack.errors import InputError, Problem, WorkFailedError, listing, refuse
from tritonstack.lint import ServingTarget, lint_folder
from tritonstack.lint.registry import shown
from tritonstack.model_files.onnx_graph import GraphTensor, OnnxError, external_data, read_graph
from tritonstack.model_files.torchscript_file import TorchScriptError, forward_arguments
from tritonstack.models.contents import skipped_proof
from tritonstack.models.digest import sha256_of
from tritonstack.models.manifest import Places
from tritonstack.models.model_config import EXECUTION_ENV_PATH, ConfigFile, ModelConfig, read_config
from tritonstack.models.model_view import ModelView, view_model
from tritonstack.models.pbtxt import Message, Scalar, quoted, to_text
from tritonstack.models.pbtxt_editing import with_fields
from tritonstack.models.recipe import RECIPE, Recipe, read_recipe
from tritonstack.models.sample import read_sample
from tritonstack.models.source import ArchiveSource, archives_of
from tritonstack.models.source_files import CONFIG, files_below, model_directories
from tritonstack.models.tensorrt_models import TENSORRT
from tritonstack.naming import DIGEST_LENGTH
from tritonstack.paths import write_text
from tritonstack.untrusted.folder_files import text_inside
from tritonstack.untrusted.gzip_reading import suffix_of

Kind = Literal["file", "program", "folder"]
"""What a next version is given as: a graph or forest, which states no configuration; a Python program, or a model
folder without a configuration; model folders with theirs, or an archive of such."""


@dataclass(frozen=True, kw_only=True)
class UpdateOptions:
    """What a model's new file does not state, and what may change."""

    inputs: tuple[GraphTensor, ...] = ()
    outputs: tuple[GraphTensor, ...] = ()
    packages: tuple[str, ...] = ()  # that a Python model needs, beside those that its folder states
    accept_changes: bool = False  # whether callers may have to change
    take_config: bool = False  # whether a new folder's config.pbtxt takes the old one's place


@dataclass(frozen=True, kw_only=True)
class FileChange:
    name: str  # in the model folder
    before: int | None  # bytes; None where there was none
    after: int | None  # None where there is none any more


@dataclass(frozen=True, kw_only=True)
class Updated:
    folder: Path
    files: tuple[FileChange, ...]  # that changed
    changes: Mapping[str, tuple[CallerChange, ...]]  # Triton model → what of it changed
    recorded: tuple[Recorded, ...]  # empty where nothing here can run it
    skipped: str = ""  # why the response could not be recorded; empty where it was
    notes: tuple[str, ...] = ()  # what else changed, or did not


def update_model(
    name: str,
    source: Path | None,
    options: UpdateOptions,
    *,
    places: Places,
    target: ServingTarget | None,
    report: Report,
    announce: Report = lambda _text: None,
    show: Callable[[Mapping[str, tuple[CallerChange, ...]]], None] = lambda _changes: None,
) -> Updated:
    """Put a file, folder or archive in the place of a model's, or take the files of its folder as they are now.

    ``name``: the model folder, or ``FOLDER/MODEL`` for one of its Triton models. ``announce``: called with what code of
    the model is run, before it is; ``show``: with what callers notice, before anything is refused for it. All is made
    in a copy of the folder, which takes its place at the end: an error or an interruption changes nothing.

    Raises :class:`InputError` where the new version needs other requests and ``accept_changes`` is not set, and for
    what :func:`read_source` refuses; :class:`WorkFailedError` where the model fails.
    """
    folder_name, _, member = name.partition("/")
    folder = places.folder(folder_name)
    recipe = read_recipe(folder)
    member = member or recipe.model or folder_name
    _refuse_made(folder, recipe, member, with_file=source is not None)
    with partial_folder(places.repositories, name=f".{folder_name}") as partial, _named(partial):
        _link_others(partial, places.repositories, but=folder_name)
        copy = partial / folder_name
        shutil.copytree(folder, copy, symlinks=True, copy_function=link_or_copy)
        work = _Work(folder=copy, recipe=recipe, member=member, options=options)
        with _read(work, source, places=places, report=report, announce=announce) as given:
            changes, notes = _placed(work, given, own=source is None, report=report, target=target)
        notes += _stored_files(work, shown(folder))
        show(changes)
        breaking = [each for each in changes.get(work.addressed, ()) if each.breaks]
        if breaking and not options.accept_changes:
            raise InputError([_breaks(breaking, name, source)])
        errors = [found.problem() for found in lint_folder(copy, target=target) if found.level == "error"]
        refuse([each for each in errors if not each.found.startswith("sample.answer:")])
        recorded, skipped = _recorded(work, replace(places, repositories=partial), report, announce)
        notes += [note for each in recorded for note in _on_tolerance(each, recipe)]
        files = tuple(_changed_files(folder, copy))
        exchange(copy, folder)  # never a moment without the folder: what a killed process left here is removed
    return Updated(folder=folder, files=files, changes=changes, recorded=recorded, skipped=skipped, notes=tuple(notes))


@dataclass(frozen=True, kw_only=True)
class _Work:
    """A copy of a model folder that becomes its next version."""

    folder: Path
    recipe: Recipe
    member: str  # the Triton model that is replaced
    options: UpdateOptions

    @property
    def addressed(self) -> str:
        """The Triton model that requests reach."""
        return self.recipe.model or self.folder.name

    @property
    def directory(self) -> Path:
        """The replaced model's."""
        return self.folder / self.member

    @property
    def view(self) -> ModelView:
        return view_model(self.directory, (), root=self.folder)


@contextmanager
def _named(partial: Path) -> Iterator[None]:
    """Let messages about files of the copy name those of the model's folder."""
    inside = f"{partial.name}/"

    def own(text: str) -> str:
        return text.replace(inside, "")

    try:
        yield
    except InputError as error:
        problems = [
            replace(each, file=own(each.file or "") or None, found=own(each.found), advice=own(each.advice))
            for each in error.problems
        ]
        raise InputError(problems) from error
    except WorkFailedError as error:
        if inside not in str(error):
            raise
        raise WorkFailedError(own(str(error))) from error


def _link_others(partial: Path, repositories: Path, *, but: str) -> None:
    """The other model folders, whose models the folder may use, and what export scripts share, beside the copy."""
    for path in repositories.iterdir():
        if path.name != but and not path.name.startswith(".") and path.is_dir():
            (partial / path.name).symlink_to(path.resolve(), target_is_directory=True)


def _refuse_made(folder: Path, recipe: Recipe, member: str, *, with_file: bool) -> None:
    """Refuse a model that the folder does not have, and files and responses that an export makes."""
    names = [path.name for path in model_directories(folder)]
    problems = []
    used = {name: used.folder for used in recipe.uses for name in used.models}
    if member in used:
        advice = f"tritonstack update {used[member]} FILE"
        found, allowed = f"{member}, which is taken from {used[member]}", f"a model of the folder: {listing(names)}"
        problems.append(Problem(file=shown(folder), found=found, allowed=allowed, advice=advice))
    elif member not in names:
        found, allowed = f"no Triton model {member}", f"{folder.name}/MODEL with one of {listing(names)}"
        problems.append(Problem(file=shown(folder), found=found, allowed=allowed))
    for name in sorted(recipe.produced - recipe.files.keys()):
        if name == recipe.sample.answer or (with_file and name.startswith(f"{member}/")):
            script = next(each.script for each in recipe.exports if name in each.produces)
            advice = f"change {shown(folder / script)}, then tritonstack build {folder.name}"
            found = f"{name}, which an export makes"
            problems.append(Problem(file=shown(folder / RECIPE), found=found, allowed="a file there", advice=advice))
            break
    refuse(problems)


def _breaks(changes: Sequence[CallerChange], name: str, source: Path | None) -> Problem:
    command = shlex.join(["tritonstack", "update", name, *([str(source)] if source else []), "--accept-changes"])
    texts = [f"{each.what}: {each.before or 'none'} → {each.after or 'none'}" for each in changes]
    return Problem(
        file=str(source) if source else name,
        found="; ".join(texts),
        allowed="a next version that takes the requests of today, and gives their outputs",
        advice=f"if callers change with it: {command}\n           else serve it beside this one: tritonstack add FILE "
        "--name NAME",
    )


@dataclass(frozen=True, kw_only=True)
class _Given:
    """What ``add`` makes of the new files."""

    addition: Addition
    kind: Kind


@contextmanager
def _read(
    work: _Work, source: Path | None, *, places: Places, report: Report, announce: Report
) -> Iterator[_Given | None]:
    """The new files, or the folder's own, as ``add`` reads them; None where those need no look."""
    view = work.view
    path = source or work.directory / _newest(view) / (view.model_file or CONFIG)
    looked_at = {"onnxruntime", *(["pytorch"] if has_environment(ENVIRONMENT) else [])}
    looked_at |= {"python"} if work.options.packages else set()
    if source is None and (view.backend not in looked_at or not path.is_file()):
        yield None
        return
    kind: Kind = "file" if path.is_file() and not path.name.endswith((".gz", ".tgz")) else "folder"
    names: dict[str, str] = {}
    inputs = work.options.inputs
    if kind == "file" and view.backend == "pytorch" and path.suffix.lower() in (".pt", ".pth") and not inputs:
        inputs, names = _stated_inputs(view.config, path)
    with partial_folder(places.archives, name=".update") as folder:
        completed = _completed_source(path, work, folder)
        kind = kind if completed == path else "program"
        add = AddOptions(
            name=work.folder.name if kind == "file" else None,
            inputs=inputs,
            outputs=work.options.outputs,
            packages=work.options.packages,
        )
        with ExitStack() as held:
            try:
                opened = read_source(completed, add, places=places, report=report, announce=announce)
                found = held.enter_context(opened)
            except WorkFailedError as error:
                if not inputs or inputs is work.options.inputs:
                    raise
                try:  # it does not take today's inputs: those of its trace, if it has one
                    alone = replace(add, inputs=())
                    opened = read_source(completed, alone, places=places, report=report, announce=announce)
                    found = held.enter_context(opened)
                except InputError:
                    raise WorkFailedError(f"{error}\nState the inputs of the new version: {_INPUT}") from error
            if len(found) > 1:
                several = listing(each.model for each in found)
                problem = Problem(file=str(source), found=f"several models: {several}", allowed="one, or one ensemble")
                raise InputError([problem])
            addition = _renamed(found[0], names)
            _refuse_other_kind(work, addition, path)
            yield _Given(addition=addition, kind=kind)


_INPUT = f"--input {TENSOR_FORM}"
_BY_POSITION = re.compile(r".*__([0-9]+)")
"""Names of inputs that Triton's PyTorch backend takes by their position."""


def _stated_inputs(old: ModelConfig, path: Path) -> tuple[tuple[GraphTensor, ...], dict[str, str]]:
    """The inputs of a TorchScript file as the configuration states them, and argument → the name that it has there."""
    try:
        arguments = [each.name for each in forward_arguments(path)]
    except TorchScriptError as error:
        raise InputError([Problem(file=str(path), found=f"no TorchScript: {error}", allowed=SUPPORTED)]) from error
    size = old.max_batch_size
    names: dict[str, str] = {}
    inputs = []
    for each in old.inputs:
        place, name = _BY_POSITION.fullmatch(each.name), each.name
        if name not in arguments and place is not None and int(place[1]) < len(arguments):
            name = arguments[int(place[1])]
            names[name] = each.name
        shape = tuple(None if axis == -1 else axis for axis in each.backend_shape(size))
        symbols = tuple("N" if size and not at else "" for at, _ in enumerate(shape))
        inputs.append(GraphTensor(name=name, datatype=each.data_type, shape=shape, symbols=symbols))
    return tuple(inputs), names


def _renamed(addition: Addition, names: Mapping[str, str]) -> Addition:
    """The model with its inputs called as before."""
    config = addition.models[0].config
    for argument, name in names.items():
        config = config.replace(f"{{ name: {quoted(argument)} ", f"{{ name: {quoted(name)} ")
    return replace(addition, models=(replace(addition.models[0], config=config), *addition.models[1:]))


def _newest(view: ModelView) -> str:
    """The version that is served."""
    return (view.served_versions or view.versions or ("1",))[-1]


def _completed_source(path: Path, work: _Work, folder: Path) -> Path:
    """A Python program alone, or a model folder without a configuration, with what the old folder has beside it."""
    is_program = path.is_file() and path.suffix == ".py"
    has_versions = path.is_dir() and any(each.name.isdecimal() for each in path.iterdir())
    lacks_config = has_versions and not (path / CONFIG).exists()
    if not is_program and not lacks_config:
        return path
    copy = folder / work.member
    view = work.view
    if is_program:
        shutil.copytree(work.directory, copy, symlinks=True, copy_function=link_or_copy)
        program = copy / _newest(view) / (view.model_file or "model.py")
        program.unlink(missing_ok=True)
        shutil.copy(path, program)
        stated = [path.parent / name for name in STATED if (path.parent / name).is_file()]
        for file in stated[:1]:
            shutil.copy(file, copy / file.name)
    else:
        shutil.copytree(path, copy, symlinks=True, copy_function=link_or_copy)
    part = work.recipe.environment_of(work.member, addressed=work.addressed)
    if part is not None and not any((copy / name).is_file() for name in STATED):
        link_or_copy(work.folder / part.requirements, copy / REQUIREMENTS)
    config = text_inside(work.directory / CONFIG, work.folder)
    (copy / CONFIG).unlink(missing_ok=True)
    write_text(copy / CONFIG, config if part is None else _without_environment(config))
    return copy


def _without_environment(text: str) -> str:
    """A configuration that names no execution environment: a build's, which the folder does not hold."""
    message = ConfigFile(file=CONFIG, text=text).parsed()
    kept = []
    for each in message.fields:
        key = each.value.last("key") if each.name == "parameters" and isinstance(each.value, Message) else None
        if not (isinstance(key, Scalar) and key.value == EXECUTION_ENV_PATH):
            kept.append(each)
    return to_text(Message(tuple(kept), 1))


def _refuse_other_kind(work: _Work, addition: Addition, source: Path) -> None:
    """Refuse a file that another backend serves: the configuration that is kept is of the one that serves it now."""
    old, new = work.view, read_config(addition.addressed.config)
    serves = {new.backend} | ({TENSORRT} if new.backend == "onnxruntime" else set())
    problems = []
    if old.backend not in serves or (new.backend == "fil" and old.config.forest_type != new.forest_type):
        same = [
            path.name
            for path in model_directories(work.folder)
            if view_model(path, (), root=work.folder).backend == new.backend
        ]
        kinds = [old.backend, new.backend]
        if new.backend == "fil" and old.backend == "fil":
            kinds = [old.config.forest_type, new.forest_type]
        folder = work.folder.name
        advice = "\n           ".join(f"tritonstack update {folder}/{each} {source}" for each in same) or (
            f"tritonstack remove {folder}\n           tritonstack add {source} --name {folder}"
        )
        found, allowed = f"a model of {kinds[1]}", f"{work.member} is one of {kinds[0]}"
        problems.append(Problem(file=str(source), found=found, allowed=allowed, advice=advice))
    if len(addition.models) > 1 and addition.model != work.addressed:
        found, allowed = f"the models of {addition.model}", f"the models of {work.addressed}, with it"
        problems.append(Problem(file=str(source), found=found, allowed=allowed))
    refuse(problems)


def _placed(
    work: _Work, given: _Given | None, *, own: bool, report: Report, target: ServingTarget | None
) -> tuple[dict[str, tuple[CallerChange, ...]], list[str]]:
    """Put the new files into the copy. Returns what changed of each Triton model, and what else to say."""
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
    work: _Work, directory: Path, text: str, model: TritonModel, *, kind: Kind, notes: list[str]
) -> NextConfig:
    """The next version's configuration of one Triton model; ``notes`` is told what else of it differs."""
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
        differ.pop("max_batch_size", None)  # of which callers are told
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
    file = directory / _newest(view) / (view.model_file or "-")
    if view.backend != "onnxruntime" or not file.is_file():
        return frozenset()
    try:
        graph = read_graph(file)
    except OnnxError:
        return frozenset()
    return frozenset(each.name for each in graph.outputs) - {each.name for each in view.config.outputs}


def _replace_files(directory: Path, model: TritonModel, *, is_file: bool, report: Report) -> None:
    """The new files in the place of the old ones. What lies beside the versions stays, unless the new version has it.

    ``is_file``: the model is one file, with its external data: it takes the place of the version that is served.
    """
    view = view_model(directory, (), root=directory.parent)
    files = dict(model.files)
    if is_file:
        version, graph = _newest(view), "model.onnx" if view.backend == TENSORRT else view.model_file
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


def _new_request(work: _Work, addition: Addition, config: ModelConfig, new: frozenset[str]) -> list[str]:
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


def _locked_packages(work: _Work, model: str) -> list[str]:
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


def _stored_files(work: _Work, folder: str) -> list[str]:
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


def _recorded(work: _Work, places: Places, report: Report, announce: Report) -> tuple[tuple[Recorded, ...], str]:
    """The responses to the sample requests, or why nothing here can give one."""
    sources: dict[str, ArchiveSource] = {}
    for source in archives_of(work.folder):
        sources.setdefault(source.recipe.sample.answer, source)
    backends = {path.name: read_config((path / CONFIG).read_text()).backend for path in model_directories(work.folder)}
    if lacking := skipped_proof(backends.values()):
        return (), lacking
    if programs := [name for name, backend in backends.items() if backend not in NO_CODE]:
        announce(runs_code(programs))
    return tuple(record_sample(each, places=places, report=report) for each in sources.values()), ""


def _on_tolerance(recorded: Recorded, recipe: Recipe) -> Iterator[str]:
    """Whether the tolerance, which stays, fits the values of the new response."""
    if recorded.largest > 1 and recipe.sample.tolerance < TOLERANCE * recorded.largest / 10:
        yield (
            f"{RECIPE} keeps sample.tolerance {recipe.sample.tolerance:g}: values up to {recorded.largest:,.4g} differ "
            f"by more on a GPU; {TOLERANCE * recorded.largest:.1g} suits them"
        )


def _changed_files(before: Path, after: Path) -> Iterator[FileChange]:
    """Files whose content differs; one that is still the same file on disk is not read."""
    old, new = dict(files_below(before)), dict(files_below(after))
    for name in sorted(old.keys() | new.keys()):
        one, other = old.get(name), new.get(name)
        if one is not None and other is not None and (one.samefile(other) or _same_content(one, other)):
            continue
        sizes = [None if path is None else path.stat().st_size for path in (one, other)]
        yield FileChange(name=name, before=sizes[0], after=sizes[1])


_BLOCK = 1 << 20


def _same_content(one: Path, other: Path) -> bool:
    if one.stat().st_size != other.stat().st_size:
        return False
    with one.open("rb") as first, other.open("rb") as second:
        while block := first.read(_BLOCK):
            if block != second.read(_BLOCK):
                return False
    return True
