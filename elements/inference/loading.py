"""From a config to a network that is ready: layout told, names chosen, everything checked before the first frame."""

from __future__ import annotations

import ast
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from elements.inference.config import ModelConfig
from elements.inference.decoders import Decoder, Sample, choose_decoder
from elements.inference.decoders.rows import are_probabilities
from elements.inference.engines.base import DeviceEngine, Engine, open_engine
from elements.inference.errors import ModelError, brief
from elements.inference.letterbox import PADDED, LetterboxMode, Size
from elements.inference.names import choose_names, class_ids_of, names_of_metadata, read_labels
from elements.inference.preprocess import InputSpec, Preprocess, Tensor
from elements.inference.tasks import Task, keypoint_shape, task_of

log = logging.getLogger("gstorch.inference")

RUN_PIXELS = 128 * 128 * 5  # of frames that share a run on the CPU; what a larger one works on leaves the core's cache
DEFAULT_SIZE = 640  # for models that leave the size open and do not tell imgsz


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A network and how to feed and read it.

    Attributes:
        engine: runs the network.
        decoder: reads the output.
        outputs: which of the network's outputs the decoder gets, in its order.
        preprocess: how frames become input.
        names: class names by number.
        keep: class numbers to report; empty: all.
        size: (width, height) of the full input.
        stride: inputs smaller than ``size`` must be multiples of this; 0: always the full input.
    """

    engine: Engine
    decoder: Decoder
    outputs: tuple[int, ...]
    preprocess: Preprocess
    names: tuple[str, ...]
    keep: frozenset[int]
    size: Size
    stride: int


def load_model(config: ModelConfig) -> LoadedModel:
    """Load and check a model.

    Raises:
        ModelError: if it cannot be used; the text does not name the file.
    """
    engine = open_engine(config)
    _check_batch(config.batch_size, engine.spec)
    metadata = engine.metadata
    size = input_size(config, engine)
    task = task_of(config.task, metadata)
    found = trial(engine, size)
    sample = _sample(config, engine, found, size, task)
    decoder = choose_decoder(sample, config.layout)
    _check_scores(decoder, sample)
    if config.coordinates != "auto":
        decoder.set_coordinates(normalized=config.coordinates == "normalized")
    names = _names(config, metadata, decoder, sample)

    preprocess = _preprocess(config, decoder, engine.spec.dtype)
    outputs = tuple(engine.output_names.index(name) for name in decoder.reading.outputs)
    _settle_batch(config, engine, outputs[0], size)
    stride = 0
    if _wants_rectangles(config, engine.spec, preprocess.letterbox):
        try:
            engine, stride = _rectangular(engine, decoder, outputs, found, size)
        except Exception as error:  # the model stays usable as it is, whatever made the attempt fail
            if config.rectangular:
                reason = error if isinstance(error, ModelError) else brief(error)
                raise ModelError(f"rectangular: true is set, but {reason}: leave it out") from error
            log.debug("input size stays fixed: %s", error)
    log.debug(
        "%s: task %s, layout %s, input %dx%d, stride %s",
        config.path, decoder.task, decoder.layout, *size, stride or "fixed",
    )  # fmt: skip
    keep = class_ids_of(config.classes, names)
    return LoadedModel(engine, decoder, outputs, preprocess, names, keep, size, stride)


def _check_batch(wanted: int, spec: InputSpec) -> None:
    """Refuse more frames per run than the model takes."""
    most = spec.batch or spec.max_batch
    if most and wanted > most:
        raise ModelError(
            f"batch-size {wanted} is asked for, but it takes at most {most} frames: set batch-size to {most} or less, "
            f"or build it for a larger batch (an engine: gstorch models build --batch 1:{most}:{wanted})"
        )


def input_size(config: ModelConfig, engine: Engine) -> Size:
    """(width, height): fixed by the model, else as configured, else the model's ``imgsz``, else 640."""
    width, height = engine.spec.size
    wanted = config.input_size
    if width is not None and height is not None:
        if wanted is not None and wanted != (width, height):
            raise ModelError(
                f"input_size {wanted[0]}x{wanted[1]} is set, but its input is fixed to {width}x{height}: leave it out, "
                "or export it in that size"
            )
        return width, height
    told = wanted or _size_of_metadata(engine.metadata)
    if told is None:
        log.warning(
            "model '%s' takes pictures of any size and does not say which is best: %d x %d is used; set 'input_size'",
            config.path, DEFAULT_SIZE, DEFAULT_SIZE,
        )  # fmt: skip
    fallback = told or (DEFAULT_SIZE, DEFAULT_SIZE)
    return width or fallback[0], height or fallback[1]


def _size_of_metadata(metadata: Mapping[str, str]) -> Size | None:
    """``imgsz`` as ultralytics writes it: ``[height, width]`` or a number."""
    try:
        value = ast.literal_eval(metadata.get("imgsz", "None"))
        height, width = value if isinstance(value, (list, tuple)) else (value, value)
        size = int(width), int(height)
    except (ValueError, SyntaxError, TypeError, OverflowError):
        return None
    return size if min(size) > 0 else None


def _from_ultralytics(metadata: Mapping[str, str]) -> bool:
    return metadata.get("author", "").lower() == "ultralytics" or {"names", "stride", "task"} <= metadata.keys()


def trial(engine: Engine, size: Size, batch: int = 0) -> list[Tensor]:
    """Outputs for seeded noise. Noise, since an even picture could leave boxes all zero."""
    batch = batch or engine.spec.batch or engine.spec.min_batch
    try:
        noise = np.random.default_rng(0).random(engine.spec.shape(batch, size), np.float32)
        if engine.spec.dtype == np.uint8:
            noise *= 255
        return engine.run(noise.astype(engine.spec.dtype))
    except Exception as error:  # ONNX Runtime's exceptions share no base class but this
        raise ModelError(f"it fails on a {size[0]}x{size[1]} input: {brief(error)}. {engine.advice}") from error


def _settle_batch(config: ModelConfig, engine: Engine, output: int, size: Size) -> None:
    """Find out whether a model takes batches, where it will get some: torch files do not tell, others may be wrong."""
    spec = engine.spec
    batched = isinstance(engine, DeviceEngine) or engine.on_gpu or 2 * size[0] * size[1] <= RUN_PIXELS
    if batched and spec.batch is None and spec.max_batch is None:
        try:
            batches = len(trial(engine, size, 2)[output]) == 2
        except ModelError as error:
            log.debug("a batch of 2 fails: %s", error)
            batches = False
        if not batches:
            log.info("%s takes one frame at a time: export it with a free batch to run faster", config.path)
            engine.spec = replace(spec, batch=1)


def _sample(config: ModelConfig, engine: Engine, found: Sequence[Tensor], size: Size, task: Task | None) -> Sample:
    """What the trial run shows. Outputs without a batch dimension are no results of frames and left out."""
    batch = engine.spec.batch or engine.spec.min_batch
    outputs = {
        name: output.astype(np.float32)
        for name, output in zip(engine.output_names, found, strict=True)
        if output.ndim and len(output) == batch
    }
    if not outputs:
        shapes = "; ".join(f"{n} {o.shape}" for n, o in zip(engine.output_names, found, strict=True))
        raise ModelError(f"none of its outputs has one row per frame ({shapes}): export it with the batch first")
    given = names_of_metadata(engine.metadata) or read_labels(config.labels)
    ultralytics = _from_ultralytics(engine.metadata)
    return Sample(outputs, size, len(given) or None, ultralytics, task, keypoint_shape(engine.metadata))


def _check_scores(decoder: Decoder, sample: Sample) -> None:
    scores = decoder.scores_of(decoder.picked(sample.outputs))
    if not are_probabilities(scores):
        scores = scores[np.isfinite(scores)]
        raise ModelError(
            f"read as layout {decoder.layout} for task {decoder.task}, the scores in its outputs, "
            f"{sample.described()}, are values from {scores.min():.3g} to {scores.max():.3g}, which are no "
            "probabilities: declare another 'layout' or 'task', or export the model with its sigmoid"
        )


def _names(config: ModelConfig, metadata: Mapping[str, str], decoder: Decoder, sample: Sample) -> tuple[str, ...]:
    """The class names, one for each class where the outputs tell their number."""
    if decoder.task == "embed":  # there is one class, that of all
        return names_of_metadata(metadata) or read_labels(config.labels)
    expected = decoder.reading.classes
    names = choose_names(metadata, config.labels, expected)
    if expected is not None and len(names) != expected:
        raise ModelError(
            f"its outputs, {sample.described()}, read as layout {decoder.layout} {decoder.shapes[decoder.task]} for "
            f"task {decoder.task}, have {expected} classes, but there are {len(names)} class names: give 'labels' with "
            f"{expected} names, or declare another 'layout' or 'task'"
        )
    return names


def _preprocess(config: ModelConfig, decoder: Decoder, dtype: np.dtype) -> Preprocess:
    """The layout's habits, changed by what the config says."""
    usual = decoder.preprocess
    scale = usual.scale if config.scale == "auto" else config.scale
    if dtype == np.uint8:
        if config.scale not in ("auto", "0-255"):
            raise ModelError(
                f"scale {config.scale} is asked for, but its input is uint8, which holds 0 to 255: leave scale out"
            )
        scale = "0-255"
    return Preprocess(
        letterbox=usual.letterbox if config.letterbox == "auto" else config.letterbox,
        color=usual.color if config.color == "auto" else config.color,
        scale=scale,
        pad=usual.pad if config.pad is None else config.pad,
    )


def _wants_rectangles(config: ModelConfig, spec: InputSpec, letterbox: LetterboxMode) -> bool:
    """Whether frames are to be laid into rectangles that are smaller than the input.

    Padding is seen by the network, so less of it moves boxes and scores. Unless told otherwise frames are laid as
    those who train the models do: ultralytics cuts the padding where the input's size is free, YOLOX never does. A
    network that is compiled is so for one size.

    Raises:
        ModelError: if it is asked for where there is no padding.
    """
    wanted = config.rectangular
    if wanted and letterbox not in PADDED:
        raise ModelError(f"rectangular: true is set, but with letterbox {letterbox} there is no padding: leave it out")
    usual = spec.size == (None, None) and letterbox == "center" and not config.compile
    return usual if wanted is None else wanted


def _rectangular(
    engine: Engine, decoder: Decoder, outputs: Sequence[int], expected: Sequence[Tensor], size: Size
) -> tuple[Engine, int]:
    """An engine that takes inputs smaller than ``size``, and the multiple they must have.

    A model with a fixed size is rewritten. It counts only if it gives the same for the full size as before, and the
    right number of rows for a smaller one.

    Raises:
        ModelError: if none can be had.
    """
    fixed = engine.spec.size != (None, None)
    rows = outputs[0]
    stride = decoder.largest_stride(expected[rows].shape, size)
    if not stride or (fixed and (None in engine.spec.size or not decoder.has_grid)):
        raise ModelError(f"layout {decoder.layout} does not tell which other sizes its input may have")
    free = engine.with_free_size() if fixed else engine
    if free is None:
        raise ModelError("the size of its input cannot be freed: export it with a free one")
    if fixed:
        again = trial(free, size)
        if not all(np.allclose(again[i], expected[i], rtol=1e-3, atol=1e-3, equal_nan=True) for i in outputs):
            raise ModelError("with a free input size the full input gives another result")
    smaller = (size[0], max(stride, round(size[1] * 9 / 16 / stride) * stride))
    if not decoder.fits_size(trial(free, smaller)[rows].shape, smaller):
        raise ModelError("a smaller input gives another number of rows")
    return free, stride
