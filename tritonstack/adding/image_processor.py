"""preprocessor_config.json of transformers → the fields of an image adapter, where that computes the same pixels.

Sources: transformers, the image processors of these models (which sides ``size`` states, the crop of ConvNeXT), and
``get_resize_output_image_size`` (the longer side is rounded down).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_KNOWN = {
    "BeitImageProcessor": "square", "BitImageProcessor": "shorter", "CLIPImageProcessor": "shorter",
    "ConvNextImageProcessor": "convnext", "DeiTImageProcessor": "square", "MobileNetV1ImageProcessor": "shorter",
    "MobileNetV2ImageProcessor": "shorter", "SiglipImageProcessor": "square", "ViTImageProcessor": "square",
}  # fmt: skip
"""Class → what a ``size`` of one number is the length of: each side, or the shorter one."""
_RESAMPLES = {2: "bilinear", 3: "bicubic"}
"""Pillow's numbers of the filters that an adapter has."""
_CONVNEXT_STRETCHED = 384
"""From this ``size`` on ConvNeXT's processor resizes to a square, and cuts nothing out."""


class UnlikeAdapterError(Exception):
    """What a processor does and an image adapter does not; the message is for "not known: …"."""


@dataclass(frozen=True, kw_only=True)
class _Sides:
    resize: int
    crop: int
    stretch: bool


def adapter_of_processor(about: Mapping[str, Any], *, image: str) -> dict[str, Any]:
    """Fields of the adapter that makes of a file what the processor makes of it, for the input ``image``.

    Raises :class:`UnlikeAdapterError` with everything that an adapter has no setting for.
    """
    lacking = list(_lacking(about))
    if lacking:
        raise UnlikeAdapterError("; ".join(lacking))
    sides = _sides(about)
    if sides.crop > sides.resize:
        raise UnlikeAdapterError(f"crop_size {sides.crop} is more than size {sides.resize}: it fills up with black")
    fields: dict[str, Any] = {"input": image, "encoding": "pixels"}
    if sides.resize != sides.crop:
        fields["resize"] = sides.resize
    if sides.stretch:
        fields["stretch"] = True
    fields |= {"crop": sides.crop, "resample": _RESAMPLES[about["resample"]]}
    fields["rescale"] = about["rescale_factor"] if about.get("do_rescale", True) else 1.0
    if about.get("do_normalize", True):
        fields |= {"mean": list(about["image_mean"]), "std": list(about["image_std"])}
    return fields


def _lacking(about: Mapping[str, Any]) -> Iterator[str]:
    known = _class(about)
    if known not in _KNOWN:
        yield f"{known or 'no image_processor_type'}, and known are {', '.join(sorted(_KNOWN))}"
        return
    if not about.get("do_resize", True):
        yield "do_resize is false: the model takes images of any size, an adapter makes them one size"
    if about.get("resample") not in _RESAMPLES:
        yield f"resample {about.get('resample')}: an adapter has {' and '.join(_RESAMPLES.values())}"
    if about.get("do_rescale", True) and not _is_number(about.get("rescale_factor")):
        yield f"rescale_factor {about.get('rescale_factor')}"
    for name in ("image_mean", "image_std") if about.get("do_normalize", True) else ():
        values = about.get(name)
        if not isinstance(values, list) or len(values) != 3 or not all(map(_is_number, values)):
            yield f"{name} {values}: an adapter has one number for each of red, green and blue"
    if "size" not in about:
        yield "no size"
    elif _shorter(about["size"]) is None and _square(about["size"]) is None:
        yield f"size {about['size']}: an adapter makes squares"
    if about.get("do_center_crop") and _square(about.get("crop_size")) is None:
        yield f"crop_size {about.get('crop_size')}: an adapter makes squares"


def _class(about: Mapping[str, Any]) -> str:
    """The processor's class; fast ones and the older names of feature extractors compute the same."""
    name = str(about.get("image_processor_type") or about.get("feature_extractor_type") or "")
    return re.sub(r"(ImageProcessor(Fast|Pil)?|FeatureExtractor)$", "ImageProcessor", name)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_length(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _square(size: Any) -> int | None:
    """The side of a square; None where a size is none."""
    if isinstance(size, dict) and size.keys() == {"height", "width"} and size["height"] == size["width"]:
        size = size["height"]
    return size if _is_length(size) else None


def _shorter(size: Any) -> int | None:
    """The length that a size states for the shorter side alone."""
    return size["shortest_edge"] if isinstance(size, dict) and size.keys() == {"shortest_edge"} else None


def _sides(about: Mapping[str, Any]) -> _Sides:
    size, kind = about["size"], _KNOWN[_class(about)]
    shorter = _shorter(size)
    length = shorter or _square(size) or 0
    if kind == "convnext":
        if length >= _CONVNEXT_STRETCHED:
            return _Sides(resize=length, crop=length, stretch=True)
        return _Sides(resize=int(length / (about.get("crop_pct") or 224 / 256)), crop=length, stretch=False)
    stretch = shorter is None and (isinstance(size, dict) or kind == "square")
    if about.get("do_center_crop"):
        return _Sides(resize=length, crop=_square(about["crop_size"]) or 0, stretch=stretch)
    if not stretch:
        raise UnlikeAdapterError(f"size {size} without a crop: images keep their proportions, an adapter makes squares")
    return _Sides(resize=length, crop=length, stretch=True)
