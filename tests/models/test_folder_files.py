"""Files of a model folder: links that lead outside, pipes and devices reach no reader, and the linter names them."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lint.onnx_files import part, write_graph
from tests.models.folders import places_in, write, write_double
from tritonstack.adding.additions import AddOptions
from tritonstack.adding.sources import read_source
from tritonstack.archives.build import build_models
from tritonstack.archives.stored_inputs import pack_inputs
from tritonstack.errors import InputError
from tritonstack.lint import lint_folder
from tritonstack.model_files.onnx_graph import external_files
from tritonstack.models.digest import model_digest
from tritonstack.models.manifest import Places
from tritonstack.models.source import archives_of
from tritonstack.models.source_files import files_below
from tritonstack.untrusted.folder_files import is_fit_file, read_inside, unfit

SECRET = "the user's own: do not copy"


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """A project with the folder ``double``, and a file of the user's outside of it."""
    write_double(tmp_path)
    (tmp_path / "secret").write_text(SECRET)
    return places_in(tmp_path)


def make_link(path: Path, secret: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(secret)


def make_pipe(path: Path, _secret: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def make_device_link(path: Path, _secret: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to("/dev/zero")


def make_folder_link(path: Path, secret: Path) -> None:
    """The file's folder leads outside."""
    path.unlink(missing_ok=True)
    (secret.parent / "elsewhere").mkdir(exist_ok=True)
    (secret.parent / "elsewhere" / path.name).write_text(SECRET)
    shutil.rmtree(path.parent)
    path.parent.symlink_to(secret.parent / "elsewhere")


@contextmanager
def ends() -> Iterator[None]:
    """Fails where the block waits for a pipe's other end: a writer opens none, so it would wait for ever."""
    waits = threading.Timer(60, os._exit, [99])
    waits.start()
    try:
        yield
    finally:
        waits.cancel()


MAKERS = [make_link, make_pipe, make_device_link, make_folder_link]
FILES = [
    "sample/request.json",
    "sample/answer.json",
    "double/1/model.py",
    "double/config.pbtxt",
    "labels/labels.txt",
    "recipe.yaml",
]


@pytest.mark.parametrize(
    ("name", "maker"),
    # the recipe's own folder is the one that the user names
    [(name, maker) for name in FILES for maker in MAKERS if (name, maker) != ("recipe.yaml", make_folder_link)],
)
def test_no_reader_takes_what_lies_outside_or_is_no_file(
    places: Places, name: str, maker: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    folder = places.folder("double")
    write(folder, {"labels/labels.txt": "a"})
    with (folder / "recipe.yaml").open("a") as recipe:
        recipe.write("client_files: [labels/labels.txt]\n")
    (source,) = archives_of(folder)
    maker(folder / name, tmp_path / "secret")
    with ends():
        with pytest.raises(InputError):
            model_digest(archives_of(folder)[0])
        with pytest.raises(InputError):
            pack_inputs(source, tmp_path / "inputs.tar.gz")
        with pytest.raises(InputError):
            build_models(["double"], places=places)
        if name != "recipe.yaml":
            rules = {finding.rule for finding in lint_folder(folder)}
            assert rules & {"link-outside", "not-a-file"}
    assert not (tmp_path / "inputs.tar.gz").exists()
    assert not [
        path for path in places.archives.glob("**/*") if path.is_file() and SECRET.encode() in path.read_bytes()
    ]


@pytest.mark.parametrize("name", ["double/1/model.py", "double/config.pbtxt", "double/1/notes.txt"])
@pytest.mark.parametrize("maker", MAKERS)
def test_a_repository_of_another_is_not_added_with_files_of_the_user(
    places: Places, name: str, maker: Callable[[Path, Path], None], tmp_path: Path
) -> None:
    given = tmp_path / "given"
    write(given, {"double/1/notes.txt": "n"})
    for each in ("double/1/model.py", "double/config.pbtxt"):
        write(given, {each: (places.folder("double") / each).read_text()})
    maker(given / name, tmp_path / "secret")
    with (
        ends(),
        pytest.raises(InputError) as caught,
        read_source(given, AddOptions(name="new"), places=places, report=lambda _: None),
    ):
        pass
    assert SECRET not in str(caught.value)


def test_the_external_data_of_a_graph_is_not_followed_through_a_link(places: Places, tmp_path: Path) -> None:
    tensors = [{"name": "x", "dtype": "FP32", "shape": ["N", 4]}]
    given = tmp_path / "given"
    given.mkdir()
    write_graph(given / "net.onnx", {"inputs": tensors, "outputs": tensors, "weights": {"w": "weights.bin"}})
    (given / "weights.bin").symlink_to(tmp_path / "secret")
    with (
        pytest.raises(InputError, match="a link that leads outside"),
        read_source(given / "net.onnx", AddOptions(), places=places, report=lambda _: None),
    ):
        pass


def test_external_data_of_attributes_and_nested_graphs_is_named(tmp_path: Path) -> None:
    def held(place: str) -> bytes:
        return part(13, part(1, b"location") + part(2, place.encode()))

    def node(attribute: bytes) -> bytes:
        return part(1, part(4, b"Op") + part(5, attribute))

    inner = node(part(5, held("constant"))) + part(5, held("inner"))
    graph = node(part(6, inner)) + node(part(10, held("of a list"))) + part(15, part(1, held("sparse")))
    function = part(25, part(7, part(5, part(5, held("function")))))
    path = tmp_path / "net.onnx"
    path.write_bytes(part(7, graph) + function)
    assert set(external_files(path)) == {"constant", "inner", "of a list", "sparse", "function"}


def test_links_that_stay_inside_are_read_as_what_they_lead_to(tmp_path: Path) -> None:
    write(tmp_path / "m", {"a/real.txt": "r", "b/x": "x"})
    (tmp_path / "m/link.txt").symlink_to("a/real.txt")
    (tmp_path / "m/again").symlink_to("a")
    (tmp_path / "m/chain").symlink_to("link.txt")
    assert [name for name, _ in files_below(tmp_path / "m")] == [
        *("a/real.txt", "again/real.txt", "b/x", "chain", "link.txt"),
    ]
    assert read_inside(tmp_path / "m/chain", tmp_path / "m") == b"r"
    assert read_inside(tmp_path / "m/again/real.txt", tmp_path / "m") == b"r"
    (tmp_path / "m/a/up").symlink_to("real.txt/..")  # a folder to realpath, and nothing to the kernel
    with pytest.raises(InputError, match="or nowhere"):
        list(files_below(tmp_path / "m"))
    (tmp_path / "m/a/up").unlink()
    (tmp_path / "m/a/up").symlink_to("..")
    with pytest.raises(InputError, match="a folder that contains it"):
        list(files_below(tmp_path / "m"))


def test_a_file_larger_than_allowed_is_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(InputError, match="1,099,511,627,776 bytes"):
        read_inside(tmp_path / "a", tmp_path, most=1000)


TARGETS = st.lists(st.sampled_from(["..", ".", "m", "a", "b", "c", "secret"]), min_size=1, max_size=4).map("/".join)


@given(
    links=st.dictionaries(st.sampled_from(["a", "b", "c", "m/a", "m/b"]), TARGETS, max_size=5), absolute=st.booleans()
)
@settings(max_examples=150, deadline=None)
def test_whatever_links_there_are_nothing_outside_is_read(
    tmp_path_factory: pytest.TempPathFactory, links: dict[str, str], *, absolute: bool
) -> None:
    top = tmp_path_factory.mktemp("links")
    root = top / "root"
    write(root, {"m/c": "inside"})
    (top / "secret").write_text(SECRET)
    for name, target in links.items():
        place = root / name
        if not place.exists() and not place.is_symlink():
            place.symlink_to(f"{root}/{target}" if absolute else target)
    for current, folders, names in os.walk(root, followlinks=False):
        for name in (*folders, *names):
            path = Path(current) / name
            if is_fit_file(path, root):
                assert read_inside(path, root) == b"inside"
            elif path.is_file():
                assert unfit(path, root)
    with suppress(InputError):
        assert {path.read_bytes() for _, path in files_below(root)} <= {b"inside"}
