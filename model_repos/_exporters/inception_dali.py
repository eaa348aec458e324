"""Serialise the pipeline that decodes and resizes JPEGs for Inception, and decode the sample with it on the CPU.

Runs in the environment ``dali``, on a machine with or without a GPU. It also writes ``decoded.npz`` for the export that
follows: the source framework's outputs for the sample must be of the pixels that DALI decodes, since no two decoders
and resizers agree to the last bit.

The release's DALI, which is older, reads this pipeline; it refuses operators that it lacks (NVIDIA/DALI#2933). So the
pipeline has only those of the oldest DALI available, which gives the same pixels
(docs/decisions/0019-what-the-oldest-release-reads.md).
"""

# mypy: disable-error-code="import-not-found"
# DALI is in the environment that exports run in, not in the one that checks types.

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali._utils import dali_trace

from _exporters.inception_layout import DECODED, SIDE
from _exporters.script import Arguments, ExportError, atomic, say, write_report

MODEL = Path("inception-dali/1/model.dali")
MIDDLE = 127.5  # Inception's own normalisation: 0 … 255 → -1 … 1, not the means of ImageNet's colours
DISTRIBUTION = "nvidia-dali-cuda120"

# DALI writes the path of the script and its source lines into a serialised pipeline: an archive would depend on where
# it was built. There is no public switch for it; the file is searched for the path below.
dali_trace.set_tracing(enabled=False)


@pipeline_def  # type: ignore[untyped-decorator]  # DALI has no types here
def decode(*, decoder: str, pixels: str) -> Any:
    """JPEG bytes → RGB, [299, 299, 3], values -1 to 1.

    ``decoder``: ``mixed``, which decodes partly on the GPU, or ``cpu``. ``pixels``: for all else, ``gpu`` or ``cpu``.
    """
    files = fn.external_source(device="cpu", name="DALI_INPUT_0", dtype=types.UINT8, ndim=1)
    images = fn.decoders.image(files, device=decoder, output_type=types.RGB)
    images = fn.resize(
        images, device=pixels, resize_x=SIDE, resize_y=SIDE, interp_type=types.INTERP_LINEAR, antialias=True
    )
    return fn.crop_mirror_normalize(
        images, device=pixels, dtype=types.FLOAT, output_layout="HWC", mean=[MIDDLE] * 3, std=[MIDDLE] * 3
    )


def export(arguments: Arguments) -> None:
    """Write the pipeline and the decoded sample."""
    batch = arguments.options.max_batch_size
    serialised = serialise(batch=batch)
    with atomic(arguments.target / MODEL) as path:
        path.write_bytes(serialised)
    say(f"pipeline serialised, {len(serialised)} bytes, for up to {batch} pictures at once")

    picture = arguments.the_sample["INPUT"][0]
    decoded = on_cpu([picture])
    difference = prove_batches(picture, decoded[0], batch=batch)
    say(f"sample decoded on the CPU; the same alone and among {batch} files of other lengths: {difference:.2e}")
    with atomic(arguments.target / DECODED) as path, path.open("wb") as file:
        np.savez(file, images=decoded)
    figures = {"decode_batch_difference": difference}
    write_report(arguments, figures, {"dali": metadata.version(DISTRIBUTION)})


def serialise(*, batch: int) -> bytes:
    """The pipeline as production runs it, decoding and resizing on the GPU.

    It is not built here, which would need the GPU, and names no device: Triton's backend sets every instance's device,
    batch size and number of threads.
    """
    pipeline = decode(decoder="mixed", pixels="gpu", batch_size=batch, num_threads=1, device_id=None)
    serialised: bytes = pipeline.serialize()
    if str(Path(__file__).resolve().parents[2]).encode() in serialised:
        raise ExportError("DALI put this machine's paths into the serialised pipeline")
    return serialised


def on_cpu(pictures: list[np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """The same operators on the CPU: files, UINT8 [bytes] each → FP32 [n, 299, 299, 3].

    Raises :class:`ExportError` for a file that is no image.
    """
    pipeline = decode(decoder="cpu", pixels="cpu", batch_size=len(pictures), num_threads=2, device_id=None)
    try:
        pipeline.build()
        pipeline.feed_input("DALI_INPUT_0", pictures)
        (images,) = pipeline.run()
    except RuntimeError as error:
        raise ExportError(f"the sample is not a picture that DALI decodes: {error}") from error
    return np.stack([np.array(images.at(place)) for place in range(len(pictures))])


def prove_batches(picture: np.ndarray[Any, Any], alone: np.ndarray[Any, Any], *, batch: int) -> float:
    """Check that a picture's pixels depend neither on the rest of its batch nor on zeros after its end.

    Returns the largest difference. Raises :class:`ExportError` where there is one.
    """
    longer = [np.concatenate([picture, np.zeros(16 * place, np.uint8)]) for place in range(batch)]
    difference = float(np.abs(on_cpu(longer) - alone).max())
    if difference != 0.0:
        raise ExportError(f"tensor DALI_OUTPUT_0, batch {batch}: differs by {difference:.2e} from batch 1")
    return difference
