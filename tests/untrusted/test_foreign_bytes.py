"""Zips, JSON, programs, YAML, configurations, images and arrays of strangers: bounded before they are expanded."""

from __future__ import annotations

import io
import json
import math
import struct
import tempfile
import tracemalloc
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tritonstack.adapters import ImageAdapter
from tritonstack.catalogue.model_formats import FormatError, beyond_torch, torchscript_version
from tritonstack.client.images import check_image, pixels
from tritonstack.client.inputs import LARGEST_ARRAYS, InputFile, read_inputs
from tritonstack.config.yaml_loader import MOST_VALUES, YamlError, parse_yaml
from tritonstack.errors import InputError
from tritonstack.model_files.forest_file import ForestError, read_forest
from tritonstack.model_files.torchscript_file import TorchScriptError, forward_arguments
from tritonstack.models.comparison import flatten
from tritonstack.models.model_config import read_config
from tritonstack.models.pbtxt import PbtxtError, parse
from tritonstack.models.python_calls import UTILS, calls_of
from tritonstack.untrusted.foreign_text import parse_json, parse_program
from tritonstack.untrusted.zip_reading import ZipLimitError, open_zip, read_member


@contextmanager
def at_most(mebibytes: int) -> Iterator[None]:
    """Fails where more is held at once than so much."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < mebibytes << 20
    finally:
        tracemalloc.stop()


def test_a_member_of_a_zip_is_read_no_further_than_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("zeros", "w") as member:
        for _ in range(64):
            member.write(bytes(1 << 20))
    assert path.stat().st_size < 100_000
    with at_most(8), open_zip(path) as archive, pytest.raises(ZipLimitError, match="more than 1,048,576 bytes"):
        read_member(archive, "zeros", most=1 << 20)


def test_a_size_that_a_zip_understates_and_another_compression_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a", b"x" * 1000)
    with open_zip(path) as archive, pytest.raises(ZipLimitError, match="stored and deflate"):
        read_member(archive, "a", most=2000)


def test_a_list_of_members_larger_than_any_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path, stated = tmp_path / "a.zip", 1 << 30
    with path.open("wb") as stream:
        stream.truncate(stated)
        stream.seek(stated)
        stream.write(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 65_535, 65_535, stated, 0, 0))
    with at_most(64), pytest.raises(ZipLimitError, match="list of members has 1,073,741,824 bytes"), open_zip(path):
        pass


def torchscript(path: Path, *, code: bytes, version: bytes = b"3") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("m/data.pkl", b"\x80\x02c__torch__\nModel\n.")
        archive.writestr("m/code/__torch__.py", code)
        archive.writestr("m/version", version)
    return path


DEEP = b"class Model:\n  def forward(self, x: " + b"-" * 20_000 + b"1): pass\n"


@pytest.mark.parametrize(
    "code", [bytes(64 << 20), DEEP, b"\0", b"\xff", b"a = 1\n" * 400_000, b"x = " + b"1+" * 9000 + b"1"]
)
def test_the_code_of_a_torchscript_file_is_bounded_and_else_damaged(tmp_path: Path, code: bytes) -> None:
    path = torchscript(tmp_path / "model.pt", code=code)
    with at_most(150), pytest.raises(TorchScriptError, match="without TorchScript's code"):
        forward_arguments(path)
    with pytest.raises(FormatError):
        beyond_torch(path)


@pytest.mark.parametrize("version", [b"9" * 5000, b"x", bytes(1 << 20)])
def test_the_version_of_a_torchscript_file_is_a_short_number(tmp_path: Path, version: bytes) -> None:
    with pytest.raises(FormatError):
        torchscript_version(torchscript(tmp_path / "model.pt", code=b"", version=version))


@given(st.binary(max_size=400), st.integers(0, 600))
@settings(max_examples=150, deadline=None)
def test_whatever_is_overwritten_in_a_torchscript_file_is_read_or_refused(noise: bytes, place: int) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("m/version", b"3")
        archive.writestr("m/code/a.py", b"torch.relu(x)\n" * 9)
    whole = content.getvalue()
    spoilt = whole[:place] + noise + whole[place + len(noise) :]
    with tempfile.NamedTemporaryFile(suffix=".pt") as file:
        path = Path(file.name)
        path.write_bytes(spoilt)
        for read in (torchscript_version, beyond_torch):
            with suppress(FormatError):
                read(path)


FORESTS = Path(__file__).parents[1] / "adding/fixtures"


@given(st.sampled_from(["json", "ubj", "txt", "tl"]), st.binary(max_size=40), st.integers(0, 5400))
@settings(max_examples=300, deadline=None)
def test_whatever_is_overwritten_in_a_forests_file_is_read_or_damaged(kind: str, noise: bytes, place: int) -> None:
    whole = (FORESTS / f"forest.{kind}").read_bytes()
    place %= len(whole)
    with tempfile.NamedTemporaryFile() as file:
        path = Path(file.name)
        path.write_bytes(whole[:place] + noise + whole[place + len(noise) :])
        with at_most(40), suppress(ForestError):
            read_forest(path)


@pytest.mark.parametrize(
    "content", [b"tree\n" + b"\n" * (1 << 24), b"tree\n" + b"a=" * (1 << 23), b'{"a": "' + b"x" * (1 << 24)]
)
def test_a_large_file_that_begins_as_a_forests_takes_no_more_memory_than_its_text(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "model"
    path.write_bytes(content)
    with at_most(100), suppress(ForestError):
        read_forest(path)


def test_the_arrays_of_a_file_are_bounded_by_what_they_unpack_to(tmp_path: Path) -> None:
    path = tmp_path / "bomb.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", b"")
    content = path.read_bytes()
    # the member's uncompressed size, in the list of members
    place = content.rindex(b"PK\1\2") + 24
    path.write_bytes(content[:place] + struct.pack("<L", LARGEST_ARRAYS + 1) + content[place + 4 :])
    with pytest.raises(InputError, match=r"arrays of 1,073,741,825 bytes together"):
        read_inputs([InputFile(path=path)], table=None, fetch=None)  # type: ignore[arg-type]  # no adapter is used


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"a":' * 100_000, "1" * 5000, "", "{", '"\\ud800'],
)
def test_json_that_cannot_be_read_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


@given(st.binary(max_size=300) | st.text("()[]{}-+.a1 \n:=\\'\"", max_size=300).map(str.encode))
@settings(max_examples=150, deadline=None)
def test_any_program_is_read_or_no_program(content: bytes) -> None:
    with suppress(SyntaxError):
        parse_program(content, compiles=True)


@pytest.mark.parametrize("nest", [b"-" * 100_000, b"(" * 5000, b"1+" * 50_000, b"a." * 50_000, b"not " * 50_000])
def test_a_program_that_is_nested_too_deeply_calls_nothing(tmp_path: Path, nest: bytes) -> None:
    program = tmp_path / "model.py"
    program.write_bytes(b"# " + UTILS.encode() + b"\nx = " + nest + b"1\n")
    assert calls_of([program]) == frozenset()


def nested_merges(levels: int, width: int) -> str:
    """``width`` to the power of ``levels`` pairs, as PyYAML merges them."""
    if levels == 0:
        return "&a0 {k: v}"
    inner = nested_merges(levels - 1, width)
    return f"&a{levels} {{<<: [{inner}{f', *a{levels - 1}' * (width - 1)}]}}"


def test_nested_merges_of_yaml_do_not_multiply() -> None:
    with at_most(8):
        document = parse_yaml(f"x: {nested_merges(8, 9)}\n")
    assert document.value == {"x": {"k": "v"}}


def test_merges_together_bring_no_more_values_than_a_file_may_have() -> None:
    many = "\n".join(f"  k{number}: 1" for number in range(1000))
    anchors = "\n".join(f"b{number}: {{<<: *a}}" for number in range(MOST_VALUES // 1000 + 1))
    with pytest.raises(YamlError, match="more values") as caught:
        parse_yaml(f"a: &a\n{many}\n{anchors}\n")
    assert caught.value.line


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_merges_give_what_pyyaml_gives(data: st.DataObject) -> None:
    lines = []
    for number in range(data.draw(st.integers(1, 5))):
        pairs = [f"{key}: {number}{key}" for key in data.draw(st.sets(st.sampled_from("pqrs")))]
        for _ in range(data.draw(st.integers(0, 2)) if number else 0):
            names = data.draw(st.lists(st.integers(0, number - 1), min_size=1, max_size=3))
            merged = ", ".join(f"*a{name}" for name in names)
            pairs.insert(data.draw(st.integers(0, len(pairs))), f"<<: {merged if len(names) == 1 else f'[{merged}]'}")
        lines.append(f"m{number}: &a{number} {{{', '.join(pairs)}}}")
    text = "\n".join(lines)
    assert parse_yaml(text).value == yaml.safe_load(text)


@pytest.mark.parametrize("number", ["1" + ":1" * 10_000, "0x" + "f" * 10_000, "0b" + "1" * 10_000, "9" * 5000])
def test_a_number_of_yaml_is_not_computed_from_any_number_of_digits(number: str) -> None:
    with at_most(20), pytest.raises(YamlError) as caught:
        parse_yaml(f"a: {number}\n")
    assert caught.value.line == 1


def test_more_nodes_than_any_file_has_are_refused_while_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tritonstack.config.yaml_loader.MOST_VALUES", 1000)
    with at_most(6), pytest.raises(YamlError, match="more values"):
        parse_yaml("[" + "a," * 40_000 + "]")


def test_a_merge_within_itself_is_refused() -> None:
    for text in ("a: &a {<<: *a}", "a: &a {<<: {<<: *a}}"):
        with pytest.raises(YamlError, match="inside its own anchor"):
            parse_yaml(text)


@pytest.mark.parametrize("digits", ["9" * 5000, "0x" + "f" * 5000, "0" + "7" * 5000])
def test_an_integer_of_a_configuration_with_thousands_of_digits_is_damaged(digits: str) -> None:
    (complaint,) = read_config(f"name: 'm'\nmax_batch_size: {digits}").complaints
    assert (complaint.line, "digits" in complaint.found) == (2, True)


def test_an_integer_beyond_a_fraction_is_infinite_as_in_protobuf() -> None:
    control = f"control_input {{ name: 'c' control {{ fp32_false_true: [{'9' * 390}, -{'9' * 390}] }} }}"
    config = read_config(f"sequence_batching {{ {control} }}")
    batching = config.node.nodes("sequence_batching")[0].nodes("control_input")[0].nodes("control")[0]
    assert [typed.value for typed in batching.scalars["fp32_false_true"]] == [math.inf, -math.inf]


def test_a_configuration_larger_than_any_is_refused_before_it_is_read() -> None:
    with at_most(40), pytest.raises(PbtxtError, match="at most 1,000,000"):
        parse("a:1 " * 1_000_000)


def png(width: int, height: int) -> bytes:
    """A PNG that states its size, and has no pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">L", len(content)) + kind + content + struct.pack(">L", zlib.crc32(kind + content))

    head = struct.pack(">2L5B", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(bytes((width + 1) * height)) if width * height < 1_000_000 else b""
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_an_image_is_refused_by_its_size_before_it_is_decoded_or_resized() -> None:
    with at_most(8), pytest.raises(InputError, match="at most 89,478,485 pixels"):
        check_image(png(12_000, 12_000))
    adapter = ImageAdapter(input="x", encoding="pixels", crop=224)
    with at_most(64), pytest.raises(InputError, match="once its shorter side is 224"):
        pixels(png(1, 65_000), adapter)


def test_a_sample_of_deep_lists_is_counted() -> None:
    deep = json.loads("[" * 900 + "1" + "]" * 900)
    for _ in range(3000):
        deep = [deep]
    assert flatten([deep, [2, [3]], []]) == [1, 2, 3]
