"""A function of one's own in place of a decoder: an engine runs the network, the function reads its outputs.

    def read(outputs, frames, *, threshold: float = 0.5) -> list[Detections]:
        found = []
        for rows, frame in zip(outputs["boxes"], frames):
            rows = rows[rows[:, 4] >= threshold]
            found.append(Detections(frame.to_source(rows[:, :4]), rows[:, 4], rows[:, 5]))
        return found

It is called once per run of the network: with one frame on the CPU, where frames run in parallel and the function
after all of them in turn; with several elsewhere. ``outputs`` are NumPy arrays by name, as the network gave them (a
network of a fixed batch gives all its rows; those beyond ``len(frames)`` mean nothing). What the stage's ``params:``
say comes by name; a parameter named ``config`` gets the `ModelConfig`, ``names`` the class names.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from elements.inference.answer import checked_answer
from elements.inference.config import ModelConfig
from elements.inference.engines.base import Engine, open_engine
from elements.inference.errors import FrameError, ModelError, brief
from elements.inference.frame import Frame
from elements.inference.letterbox import Size
from elements.inference.loading import input_size, trial
from elements.inference.names import names_of_metadata, read_labels
from elements.inference.params import call_with_params, import_object
from elements.inference.preprocess import Preprocess, Preprocessor, Tensor
from elements.metadata.detections import Detections, FloatArray
from elements.metadata.placement import Placement

GIVEN = 2  # leading parameters that are not the user's: outputs, frames


@dataclass(frozen=True, slots=True)
class NetworkFrame:
    """A frame as the network saw it.

    Attributes:
        frame: the frame, with source, number and times.
        input_size: (width, height) of the network's input.
        placement: where the picture lies in the input.
    """

    frame: Frame
    input_size: Size
    placement: Placement

    def to_source(self, boxes: Any) -> FloatArray:
        """(N, 4) xyxy boxes from pixels of the network's input to pixels of the source, cut at its edges."""
        found = self.placement.to_source(np.asarray(boxes, np.float32).reshape(-1, 4))
        limits = np.array([self.placement.source_width, self.placement.source_height] * 2, np.float32)
        return np.clip(found, 0, limits)

    def points_to_source(self, points: Any) -> FloatArray:
        """(…, 2) points, x and y, from pixels of the network's input to pixels of the source."""
        place = self.placement
        moved = np.asarray(points, np.float32) - np.array([place.left, place.top], np.float32)
        return (moved / np.array(place.scale, np.float32)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class _Loaded:
    engine: Engine
    preprocessor: Preprocessor
    size: Size
    pool: ThreadPoolExecutor


class PostprocessedModel:
    """A network from a file whose outputs a function of one's own reads.

    Attributes:
        names: class names by number: of the model's metadata, else of ``labels``.
    """

    def __init__(self, config: ModelConfig) -> None:
        self.config = config
        self.confidence = config.confidence  # the function sees the config; these two are changed by the element
        self.iou = config.iou
        self.names: tuple[str, ...] = ()
        self._loaded: _Loaded | None = None

    def load(self) -> None:
        """Load the file, run it once, and find the function.

        Raises:
            ModelError: if the model, the function or its parameters cannot be used; the text starts with the file.
        """
        config = self.config
        try:
            engine = open_engine(config)
            size = input_size(config, engine)
            trial(engine, size)
            self.names = tuple(names_of_metadata(engine.metadata) or read_labels(config.labels))
            self._function = _function(config, self.names)
        except ModelError as error:
            raise ModelError(f"model '{config.path}': {error}") from error.__cause__
        pool = ThreadPoolExecutor(len(os.sched_getaffinity(0)), thread_name_prefix="infer")
        self._loaded = _Loaded(engine, Preprocessor(engine.spec, _preprocess(config, engine)), size, pool)

    def infer(self, frames: Sequence[Frame]) -> list[Detections]:
        """One `Detections` per frame, as the function says.

        Raises:
            FrameError: if the network or the function fails.
            RuntimeError: if the model is not loaded.
        """
        if self._loaded is None:
            raise RuntimeError("the model is not loaded: call load() first")
        batch = _batch(self.config, self._loaded.engine, len(frames))
        runs = [frames[i : i + batch] for i in range(0, len(frames), batch)]
        found: list[Detections] = []
        name = str(self.config.path)
        for run, (outputs, seen) in zip(runs, self._loaded.pool.map(self._run, runs), strict=True):
            try:
                answer = self._function(outputs, seen)
                checked_answer(answer, len(run), name, "postprocess", self.names)
                found += answer  # as it is: whoever asks leaves broken rows out, and counts them
            except Exception as error:
                raise FrameError(run[0], f"{self.config.postprocess}: {type(error).__name__}: {error}") from error
        return found

    def close(self) -> None:
        """Stop the threads and drop the network."""
        if self._loaded is not None:
            self._loaded.pool.shutdown()
            self._loaded.engine.close()
        self._loaded = None

    def _run(self, frames: Sequence[Frame]) -> tuple[dict[str, Tensor], list[NetworkFrame]]:
        """The network's outputs for frames that go through it together."""
        assert self._loaded is not None
        engine, size, preprocessor = self._loaded.engine, self._loaded.size, self._loaded.preprocessor
        frame = frames[0]
        try:
            tensor = preprocessor.tensor(engine.spec.batch or len(frames), size)
            seen = []
            for frame, slot in zip(frames, tensor, strict=False):
                seen.append(NetworkFrame(frame, size, preprocessor.fill(frame, slot, size)))
            return dict(zip(engine.output_names, engine.run(tensor), strict=True)), seen
        except Exception as error:
            raise FrameError(frame, brief(error)) from error


def _function(config: ModelConfig, names: tuple[str, ...]) -> Callable[..., Any]:
    assert config.postprocess is not None
    try:
        function = import_object(config.postprocess, "function")
        if not callable(function):
            raise ModelError("it cannot be called")
        return call_with_params(function, config.params, {"config": config, "names": names}, GIVEN)
    except ModelError as error:
        raise ModelError(f"postprocess '{config.postprocess}': {error}") from error.__cause__


def _batch(config: ModelConfig, engine: Engine, frames: int) -> int:
    """Frames per run: as the network is made, else as configured; on the CPU one, since frames run in parallel."""
    free = (config.batch_size or frames) if engine.on_gpu else 1
    return engine.spec.batch or max(1, min(free, engine.spec.max_batch or free))


def _preprocess(config: ModelConfig, engine: Engine) -> Preprocess:
    """As the config says; no layout tells what is usual."""
    usual = Preprocess()
    scale = usual.scale if config.scale == "auto" else config.scale
    return Preprocess(
        letterbox=usual.letterbox if config.letterbox == "auto" else config.letterbox,
        color=usual.color if config.color == "auto" else config.color,
        scale="0-255" if engine.spec.dtype == np.uint8 else scale,
        pad=usual.pad if config.pad is None else config.pad,
    )
