"""Decoders: network outputs to boxes, one file per family, and the choice among them.

| layout | output | how it is told |
|---|---|---|
| ``yolov8`` | (B, 4+C, A) | A is the number of grid cells and comes last |
| ``yolov8-transposed`` | (B, A, 4+C) | A grid cells; ultralytics metadata, or 4 columns + one per name (80 if none) |
| ``yolov5`` | (B, 3A, 5+C) | three rows per grid cell |
| ``yolox`` | (B, A, 5+C) | A grid cells; no ultralytics metadata; 5 columns + one per name; centres near zero |
| ``yolox-decoded`` | (B, A, 5+C) | the same, centres spread over the input |
| ``end2end`` | (B, N, 6) | 6 columns, at most 1000 rows, not one per grid cell |

Grid cells are those of strides 8, 16, 32 (also with 4 or 64, or without 8).
"""

from __future__ import annotations

from elements.inference.decoders.base import FITS, Candidates, Decoder, Sample
from elements.inference.decoders.end_to_end import EndToEnd
from elements.inference.decoders.yolov5 import YoloV5
from elements.inference.decoders.yolov8 import YoloV8, YoloV8Transposed
from elements.inference.decoders.yolox import Yolox, YoloxDecoded
from elements.inference.errors import ModelError

__all__ = [
    "Candidates",
    "Decoder",
    "EndToEnd",
    "Sample",
    "YoloV5",
    "YoloV8",
    "YoloV8Transposed",
    "Yolox",
    "YoloxDecoded",
    "choose_decoder",
]


def choose_decoder(sample: Sample, layout: str = "auto") -> Decoder:
    """The decoder for a model, from one trial run.

    Raises:
        ModelError: if ``layout`` is unknown, or is ``auto`` and none or several fit.
    """
    known = Decoder.registry
    if layout != "auto":
        if layout not in known:
            raise ModelError(f"layout: '{layout}' is not one of auto, {', '.join(known)}")
        return known[layout](sample)
    scores = {name: decoder.match(sample) for name, decoder in known.items()}
    best = max(scores.values())
    fitting = [name for name, score in scores.items() if score == best]
    if best < FITS:
        listed = "; ".join(f"{name} {decoder.shape}" for name, decoder in known.items())
        raise ModelError(
            f"its output {sample.output.shape} for a {sample.size[0]}x{sample.size[1]} input is no layout known here "
            f"({listed}). If it is one of them all the same, declare it with 'layout'; "
            "if not, export the model in one of them or write a model class of your own (model: package.module:Class)"
        )
    if len(fitting) > 1:
        shape = sample.output.shape
        readings = " or ".join(f"{name} ({known[name].num_classes(shape)} classes)" for name in fitting)
        names = "no names are" if sample.label_count is None else f"{sample.label_count} names are"
        raise ModelError(
            f"its output {shape} can be read as {readings}, and {names} given: "
            f"declare 'layout' ({' or '.join(fitting)}) or give 'labels' with one name per class"
        )
    return known[fitting[0]](sample)
