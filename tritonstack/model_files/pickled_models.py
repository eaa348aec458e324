"""Models in pickles of Python: of scikit-learn, XGBoost, LightGBM, CatBoost and PyTorch; which class, which inputs.

Read by :mod:`tritonstack.model_files.pickle_outline`: no class is imported, nothing of the file is made or run.
Sources: joblib/numpy_pickle.py, torch/serialization.py, sklearn/base.py (``__getstate__``: ``_sklearn_version``).
"""

from __future__ import annotations

import bz2
import lzma
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, cast

from tritonstack.model_files.framework_model import Column, Framework, FrameworkModel
from tritonstack.model_files.pickle_outline import PickledObject, PickleError, PickleOutline, objects_of, read_pickle
from tritonstack.model_files.torchscript_file import tensor_form

_HEAD = 4096
_LZMA_MEMORY = 256 << 20
_MOST_VALUES = 20_000


def torch_model(path: Path, outline: PickleOutline) -> FrameworkModel:
    """What torch.save wrote: a module with its class, or weights, by themselves or in a checkpoint."""
    root = outline.root
    if isinstance(root, PickledObject) and root.name not in _CONTAINERS:
        return FrameworkModel(
            format="torch-module",
            path=path,
            made_by=root.name,
            first_weight=_first_weight(root),
            own_modules=_own_modules(outline),
        )
    key = None
    if isinstance(root, dict):  # Ultralytics and others pickle the module into a mapping, beside optimizers and options
        for name, value in root.items():
            if isinstance(value, PickledObject) and value.attribute(_OF_A_MODULE) is not None:
                return FrameworkModel(
                    format="torch-module",
                    path=path,
                    made_by=value.name,
                    key=str(name),
                    first_weight=_first_weight(value),
                    own_modules=_own_modules(outline),
                )
        key = next((each for each in ("state_dict", "model_state_dict", "model") if each in root), None)
    return FrameworkModel(format="torch-weights", path=path, key=key, first_weight=_first_weight(root))


_OF_A_MODULE = "_modules"
"""An attribute of every module of PyTorch (``torch.nn.Module``)."""
_CONTAINERS = ("collections.OrderedDict", "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_parameter")


def _first_weight(root: Any) -> tuple[str, tuple[int, ...]] | None:
    """Name and shape of the first weight of two axes or more."""
    waiting: list[Any] = [root]
    for _ in range(_MOST_VALUES):
        if not waiting:
            break
        value = waiting.pop(0)
        pairs: list[tuple[Any, Any]] = []
        if isinstance(value, PickledObject):
            pairs = [*zip(value.items[::2], value.items[1::2], strict=False)]
            value = value.state
        if isinstance(value, dict):
            pairs += value.items()
        for name, each in pairs:
            form = tensor_form(each)
            if form is not None and len(form[1]) > 1 and isinstance(name, str):
                return name, form[1]
        waiting += [each for _, each in pairs if isinstance(each, dict | PickledObject)]
    return None


class _Unpacked:
    """The content of a compressed stream, unpacked piece by piece."""

    def __init__(self, stream: BinaryIO, unpacker: Any) -> None:
        self.stream, self.unpacker, self.buffer = stream, unpacker, b""

    def read(self, size: int) -> bytes:
        """At most ``size`` bytes."""
        while len(self.buffer) < size and not self.unpacker.eof:
            left = size - len(self.buffer)
            waiting = getattr(self.unpacker, "unconsumed_tail", b"")
            needs_more = getattr(self.unpacker, "needs_input", True)
            piece = waiting or (self.stream.read(1 << 16) if needs_more else b"")
            if not piece and needs_more:
                break
            self.buffer += self.unpacker.decompress(piece, max(left, 1))
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        return taken

    def readline(self, size: int) -> bytes:
        """A line of at most ``size`` bytes."""
        line = b""
        while len(line) < size and not line.endswith(b"\n") and (sign := self.read(1)):
            line += sign
        return line

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        return 0


_UNPACKERS: tuple[tuple[bytes, Callable[[], Any]], ...] = (
    (b"\x1f\x8b", lambda: zlib.decompressobj(47)),
    (b"\x78\x01", lambda: zlib.decompressobj(47)),
    (b"\x78\x5e", lambda: zlib.decompressobj(47)),
    (b"\x78\x9c", lambda: zlib.decompressobj(47)),
    (b"\x78\xda", lambda: zlib.decompressobj(47)),
    (b"BZh", bz2.BZ2Decompressor),
    (b"\xfd7zXZ", lambda: lzma.LZMADecompressor(memlimit=_LZMA_MEMORY)),
    (b"\x5d\x00\x00", lambda: lzma.LZMADecompressor(format=lzma.FORMAT_ALONE, memlimit=_LZMA_MEMORY)),
)
"""Beginnings of the compressions that joblib and gzip write, but LZ4's, which Python cannot unpack."""
_LZ4 = b"\x04\x22\x4d\x18"
_LEGACY_TORCH = 0x1950A86A20F9469CFC6C
"""The first pickle of a file that torch.save wrote before PyTorch 1.6: torch/serialization.py, MAGIC_NUMBER."""


def pickled_model(path: Path, head: bytes) -> FrameworkModel | None:
    """A pickle, as pickle, joblib (compressed, too), cloudpickle, dill and the old torch.save write it."""
    if head.startswith(_LZ4):
        return FrameworkModel(format="pickle", path=path, made_by="a file compressed with LZ4, as joblib writes it")
    unpacker = next((make for begins, make in _UNPACKERS if head.startswith(begins)), None)
    try:
        with path.open("rb") as stream:
            if unpacker is None:
                return _of_pickle(path, stream, head) if _begins_pickle(head) else None
            unpacked = _Unpacked(stream, unpacker())
            begins = unpacked.read(_HEAD)
            unpacked.buffer = begins + unpacked.buffer
            return _of_pickle(path, cast("BinaryIO", unpacked), begins) if _begins_pickle(begins) else None
    except (PickleError, zlib.error, lzma.LZMAError, OSError, EOFError, ValueError):
        return None


def _begins_pickle(head: bytes) -> bool:
    """Whether bytes begin as a pickle: with its protocol, or, of protocols 0 and 1, with a class or a list."""
    return bool(
        re.match(rb"\x80[\x02-\x05]", head)
        or re.match(rb"c[A-Za-z_][\w.]*\n[A-Za-z_]\w*\n", head)
        or re.match(rb"[(\]}](?:[lqpd(]|dp0|lp0)", head)
    )


def _of_pickle(path: Path, stream: BinaryIO, _head: bytes) -> FrameworkModel:
    outline = read_pickle(stream)
    root, key = outline.root, None
    if root == _LEGACY_TORCH:
        for _ in range(2):  # the protocol's version, and sizes of the machine's types
            read_pickle(stream)
        return torch_model(path, read_pickle(stream))
    if isinstance(root, dict):
        models = [(name, each) for name, each in root.items() if isinstance(each, PickledObject) and _library(each)]
        if models:
            key, root = str(models[0][0]), models[0][1]
    if isinstance(root, PickledObject) and root.name.startswith(_CONTAINERS[0]) and _is_torch(outline):
        return torch_model(path, outline)
    library = _library(root)
    common = FrameworkModel(
        format=library or "pickle",
        path=path,
        made_by=root.name if isinstance(root, PickledObject) else _named(outline),
        key=key,
        own_modules=_own_modules(outline),
    )
    if library == "sklearn" and isinstance(root, PickledObject):
        return _of_sklearn(common, root, outline)
    if library == "torch-module":
        return replace(common, first_weight=_first_weight(root))
    return common


def _of_sklearn(model: FrameworkModel, root: PickledObject, outline: PickleOutline) -> FrameworkModel:
    """A model of scikit-learn with what its objects state: version, inputs, and what a converter has to know of."""
    names = [str(each) for each in outline.globals]
    return replace(
        model,
        version=_sklearn_version(root),
        columns=_columns(root),
        vectorizers=tuple(name for name in names if name.endswith(("TfidfVectorizer", "CountVectorizer"))),
        boosted=tuple(name for name in names if name.endswith(_BOOSTED)),
    )


def skops_model(path: Path, outline: PickleOutline) -> FrameworkModel:
    """What skops.io.dump wrote: mostly a model of scikit-learn."""
    root = outline.root
    made_by = root.name if isinstance(root, PickledObject) else ""
    model = FrameworkModel(format="skops", path=path, made_by=made_by, own_modules=_own_modules(outline))
    is_sklearn = isinstance(root, PickledObject) and _library(root) == "sklearn"
    return _of_sklearn(model, root, outline) if is_sklearn else model


_BOOSTED = ("XGBClassifier", "XGBRegressor", "XGBRFClassifier", "XGBRFRegressor", "LGBMClassifier", "LGBMRegressor")
_LIBRARIES: Mapping[str, Framework] = {
    "sklearn": "sklearn", "imblearn": "sklearn", "xgboost": "xgboost", "lightgbm": "lightgbm", "catboost": "catboost",
    "torch": "torch-module", "ultralytics": "torch-module", "torchvision": "torch-module",
}  # fmt: skip
"""Package of a class → the format that its pickles are."""


def _library(root: Any) -> Framework | None:
    return _LIBRARIES.get(root.name.split(".")[0]) if isinstance(root, PickledObject) else None


def _is_torch(outline: PickleOutline) -> bool:
    return any(each.module.startswith("torch") for each in outline.globals)


def _named(outline: PickleOutline) -> str:
    """The first class or function of a pickle that is no helper of pickling."""
    names = (str(each) for each in outline.globals if each.module.split(".")[0] not in _HELPERS)
    return next(names, "")


_HELPERS = ("builtins", "__builtin__", "copyreg", "copy_reg", "collections", "numpy", "joblib", "_codecs", "pandas")
_KNOWN = frozenset({
    *_HELPERS, *_LIBRARIES, "scipy", "skl2onnx", "category_encoders", "_pickle", "datetime", "functools", "operator",
    "pathlib", "enum", "decimal", "uuid", "random", "threading", "tensorflow", "keras", "transformers", "cloudpickle",
    "dill", "statsmodels", "spacy", "prophet", "torch", "types", "re", "itertools", "typing", "warnings", "logging",
})  # fmt: skip


def _own_modules(outline: PickleOutline) -> tuple[str, ...]:
    """Modules of classes that a pickle needs and that no known library has, such as ``__main__``."""
    modules = dict.fromkeys(each.module for each in outline.globals if each.module.split(".")[0] not in _KNOWN)
    return tuple(modules)


def _sklearn_version(root: PickledObject) -> str:
    versions = (made.attribute("_sklearn_version") for made in objects_of(root))
    texts = (each for each in versions if isinstance(each, str))
    return next((each for each in texts if re.fullmatch(r"[0-9][0-9a-z.]{0,20}", each)), "")


def _columns(root: PickledObject) -> tuple[Column, ...]:
    """The inputs of a fitted model of scikit-learn: named columns of a table, a text, or numbers of a row."""
    first = _first_step(root)
    if first is None:
        return ()
    if first.name.rpartition(".")[2] in ("TfidfVectorizer", "CountVectorizer", "HashingVectorizer"):
        return (Column(name="text", is_text=True),)
    names = array_texts(first.attribute("feature_names_in_")) or array_texts(root.attribute("feature_names_in_"))
    if first.name.endswith(".ColumnTransformer") and names:
        texts = _text_columns(first)
        return tuple(Column(name=name, is_text=name in texts) for name in names)
    width = next((each for each in (first.attribute("n_features_in_"), root.attribute("n_features_in_")) if each), None)
    return (Column(name="features", is_text=False, width=width),) if isinstance(width, int) else ()


def _first_step(root: PickledObject) -> PickledObject | None:
    """The step of a pipeline that takes its input; any other model is its own."""
    made: Any = root
    for _ in range(8):
        steps = made.attribute("steps") if isinstance(made, PickledObject) and made.name.endswith("Pipeline") else None
        if not isinstance(steps, list) or not steps or not isinstance(steps[0], tuple) or len(steps[0]) != 2:
            break
        made = steps[0][1]
    return made if isinstance(made, PickledObject) else None


def _text_columns(transformer: PickledObject) -> frozenset[str]:
    """Columns of a ColumnTransformer that hold texts: their encoders know texts, or split them into words."""
    found: set[str] = set()
    fitted = transformer.attribute("transformers_") or transformer.attribute("transformers")
    for each in fitted if isinstance(fitted, list) else ():
        if not isinstance(each, tuple) or len(each) != 3:
            continue
        _, made, columns = each
        if isinstance(columns, str):  # one column, as vectorizers of texts take it
            found.add(columns)
            continue
        names = [name for name in columns if isinstance(name, str)] if isinstance(columns, list) else []
        lists = [made.attribute("categories_") for made in objects_of(made) if made.attribute("categories_")]
        known = lists[0] if lists and isinstance(lists[0], list) else []
        if len(known) == len(names):
            found.update(name for name, values in zip(names, known, strict=True) if array_texts(values))
        elif any(array_texts(made.attribute("statistics_")) for made in objects_of(made)):
            found.update(names)
    return frozenset(found)


def array_texts(array: Any) -> tuple[str, ...]:
    """The values of a pickled NumPy array of texts; empty for any other."""
    if not isinstance(array, PickledObject):
        return ()
    if array.items and isinstance(array.items[0], PickledObject):  # joblib's, whose objects are a pickle of their own
        return array_texts(array.items[0])
    values = array.state[-1] if isinstance(array.state, tuple) and array.state else None
    if isinstance(values, list) and values and all(isinstance(each, str) for each in values):
        return tuple(values)
    return ()
