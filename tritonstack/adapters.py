"""Adapters of clients: how a file becomes inputs, and what outputs mean.

A recipe states it, the manifest carries it, and :mod:`tritonstack.client` does it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Annotated, Literal, Protocol

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, model_validator

from tritonstack.naming import NAME_PATTERN


class ClosedModel(BaseModel):
    """Data of a file, recipe or manifest: closed to unknown fields, and immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _inside(path: str) -> str:
    """A path below the model folder, with forward slashes."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or "\\" in path or str(pure) in ("", "."):
        raise ValueError("a path inside the model folder, with forward slashes and without '..'")
    return str(pure)


InsidePath = Annotated[str, AfterValidator(_inside)]
"""A file of the model folder, or one that an export makes there."""

Name = Annotated[str, Field(pattern=NAME_PATTERN)]
"""Lower-case letters, digits and hyphens, no hyphen at either end."""


ImageEncoding = Literal["png-bytes", "file-bytes", "pixels"]
TextEncoding = Literal["utf8", "tokens"]
InputKind = Literal["image", "text"]


class ModelInput(Protocol):
    """An input of a model, with its batch dimension: a manifest's tensor entry, or a tensor table's."""

    @property
    def name(self) -> str: ...
    @property
    def datatype(self) -> str: ...
    @property
    def shape(self) -> tuple[int, ...]: ...


_Tensor = Annotated[str, Field(min_length=1)]
_Side = Annotated[int, Field(ge=1, le=16384)]
_Three = tuple[FiniteFloat, FiniteFloat, FiniteFloat]
_IMAGE_ONLY = ("resize", "stretch", "resample", "crop", "rescale", "mean", "std", "layout")
_TOKENS_ONLY = ("tokenizer", "ids", "mask", "types", "pair", "length", "longest", "pad", "prefix")


class _OfClient(ClosedModel):
    """What a client does with a file or an output."""

    @property
    def files(self) -> tuple[str, ...]:
        """The client files that it needs."""
        given = (getattr(self, name, None) for name in ("tokenizer", "labels"))
        return tuple(file for file in given if file)


class ImageAdapter(_OfClient):
    """How an image file becomes one input of batch size 1."""

    input: _Tensor = Field(description="The input that the image becomes.")
    encoding: ImageEncoding = Field(
        description="png-bytes: an image of any format, sent as the bytes of a PNG; file-bytes: the file as it is. "
        "Each becomes one BYTES element, or where the input is UINT8 its bytes in a row. pixels: upright RGB, resized, "
        "cropped and normalised, as FP32."
    )
    resize: _Side | None = Field(
        None, description="pixels: the length that the shorter side gets; without it the same as `crop`."
    )
    stretch: bool = Field(
        False,
        description="pixels: whether both sides get that length, so that an image that is no square changes its "
        "proportions, and none of it is cut off by the resizing.",
    )
    resample: Literal["bilinear", "bicubic"] = Field(
        "bilinear", description="pixels: how the resizing interpolates; both smooth what they make smaller."
    )
    crop: _Side | None = Field(
        None, description="pixels: the side of the square that is cut out of the middle; at most `resize`."
    )
    rescale: FiniteFloat = Field(
        1 / 255, gt=0, description="pixels: what each value of 0 to 255 is multiplied by, before mean and std."
    )
    mean: _Three = Field((0.0, 0.0, 0.0), description="pixels: subtracted from red, green and blue after rescaling.")
    std: _Three = Field((1.0, 1.0, 1.0), description="pixels: what red, green and blue are divided by after that.")
    layout: Literal["nchw", "nhwc"] = Field(
        "nchw", description="pixels: the order of the input's axes: batch, channels (RGB), height, width."
    )

    @model_validator(mode="after")
    def _fits_together(self) -> ImageAdapter:
        if self.encoding != "pixels":
            _refuse(_differing(self, _IMAGE_ONLY), f"encoding {self.encoding}", "only pixels has")
        elif self.crop is None:
            raise ValueError("encoding pixels with `crop`, the side of the square that the model takes")
        elif self.resize is not None and self.resize < self.crop:
            raise ValueError(f"resize of at least crop ({self.crop}); {self.resize} leaves too little to cut out")
        elif not all(value > 0 for value in self.std):
            raise ValueError(f"std of three numbers above 0; {list(self.std)} cannot be divided by")
        return self

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs that it makes."""
        return (self.input,)


class TextAdapter(_OfClient):
    """How a text, or a pair of texts, becomes inputs of batch size 1."""

    encoding: TextEncoding = Field(
        description="utf8: the text as one BYTES element for `input`. tokens: the numbers of its tokens for `ids`, of "
        "the input's own integer type, for `mask` 1 for each token and 0 for padding, for `types` 1 for the tokens of "
        "a pair's second text and 0 for others."
    )
    input: _Tensor | None = Field(None, description="utf8: the input that the text becomes.")
    tokenizer: InsidePath | None = Field(
        None, description="tokens: the tokenizer's file (tokenizer.json of Hugging Face's tokenizers), a client file."
    )
    ids: _Tensor | None = Field(None, description="tokens: the input for the tokens' numbers.")
    mask: _Tensor | None = Field(None, description="tokens: the input for the attention mask, where there is one.")
    types: _Tensor | None = Field(None, description="tokens: the input for the token type ids, where there is one.")
    pair: bool = Field(
        False,
        description="tokens: whether texts come in pairs, such as a question and its context, or a query and a "
        "passage. Of a text file the first line is the first text, the rest the second.",
    )
    length: int | None = Field(
        None,
        ge=1,
        description="tokens: how many tokens the input always has: longer texts are cut, shorter ones padded. Without "
        "it, as many as the text has.",
    )
    longest: int | None = Field(
        None,
        ge=1,
        description="tokens: the most tokens that the model takes: longer texts are cut, of a pair the longer one; "
        "shorter ones stay as they are.",
    )
    pad: _Tensor | None = Field(
        None, description="tokens: the token to pad with; without it the tokenizer's own, else [PAD] or <pad>."
    )
    prefix: str = Field("", description="tokens: put before the text, such as a task's name.")

    @model_validator(mode="after")
    def _fits_together(self) -> TextAdapter:
        if self.encoding == "utf8":
            _refuse(_differing(self, _TOKENS_ONLY), "encoding utf8", "only tokens has")
            if self.input is None:
                raise ValueError("encoding utf8 with `input`, the input that the text becomes")
            return self
        _refuse(
            _differing(self, ("input",)),
            "encoding tokens, whose inputs are `ids`, `mask` and `types`,",
            "only utf8 has",
        )
        missing = [name for name in ("tokenizer", "ids") if getattr(self, name) is None]
        if missing:
            raise ValueError(f"encoding tokens with {_listed(missing)}")
        given = {name: value for name in ("ids", "mask", "types") if (value := getattr(self, name)) is not None}
        if twice := next((value for value in given.values() if list(given.values()).count(value) > 1), None):
            raise ValueError(f"different inputs for {_listed(list(given))}, not {twice} twice")
        if self.length is not None and self.longest is not None:
            raise ValueError("`length`, which every request then has, or `longest`, not both")
        if self.pad is not None and self.length is None:
            raise ValueError("`pad` only with `length`: without it nothing is padded")
        return self

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs that it makes."""
        return tuple(name for name in (self.input, self.ids, self.mask, self.types) if name is not None)


Adapter = ImageAdapter | TextAdapter


class Adapters(ClosedModel):
    """The kinds of file that a client may be given besides JSON and NumPy files."""

    image: ImageAdapter | None = Field(None, description="For image files.")
    text: TextAdapter | None = Field(None, description="For text files.")

    def of(self, kind: InputKind) -> Adapter | None:
        """The adapter for a kind of file."""
        return self.image if kind == "image" else self.text

    @property
    def present(self) -> dict[InputKind, Adapter]:
        """Kind of file → its adapter, for those that there are."""
        both: tuple[InputKind, InputKind] = ("image", "text")
        return {kind: adapter for kind in both if (adapter := self.of(kind)) is not None}


class ClassesAnswer(_OfClient):
    """An output with one score a class."""

    output: _Tensor = Field(description="The output with the scores: one a class.")
    labels: InsidePath | None = Field(
        None, description="The names of the classes, one a line in the order of the scores: a client file."
    )
    top: int = Field(5, ge=1, description="How many classes a person is shown, the best first.")
    softmax: bool = Field(
        False, description="Whether the scores are logits: a client turns them into probabilities by softmax."
    )


class TextAnswer(_OfClient):
    """An output with the numbers of a text's tokens."""

    output: _Tensor = Field(description="The output with the tokens' numbers.")
    tokenizer: InsidePath = Field(description="The tokenizer's file that turns them into text: a client file.")


class EmbeddingAnswer(_OfClient):
    """An output that is one vector for the whole input."""

    output: _Tensor = Field(description="The output with the vector.")


AnswerKind = ClassesAnswer | TextAnswer | EmbeddingAnswer


class Answers(ClosedModel):
    """What the output means that a person wants; at most one of the kinds. Only that output is then asked for."""

    classes: ClassesAnswer | None = Field(None, description="The best classes, with their names.")
    text: TextAnswer | None = Field(None, description="A text.")
    embedding: EmbeddingAnswer | None = Field(None, description="A vector.")

    @model_validator(mode="after")
    def _one(self) -> Answers:
        if len(self._present()) > 1:
            raise ValueError("at most one of classes, text and embedding")
        return self

    @property
    def kind(self) -> AnswerKind | None:
        """The one that there is."""
        return next(iter(self._present()), None)

    def _present(self) -> list[AnswerKind]:
        return [part for part in (self.classes, self.text, self.embedding) if part is not None]


def _differing(part: ClosedModel, fields: Iterable[str]) -> list[str]:
    """The fields whose value is not their default (a manifest has all of them)."""
    return [name for name in fields if getattr(part, name) != type(part).model_fields[name].get_default()]


def _refuse(fields: list[str], what: str, whose: str) -> None:
    if fields:
        raise ValueError(f"{what} without {_listed(fields)}, which {whose}")


def _listed(fields: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in fields)
