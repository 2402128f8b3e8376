"""Models: frames in, detections out."""

from __future__ import annotations

import itertools
import logging
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from elements.inference.config import ModelConfig
from elements.inference.crops import CropBatch, taken
from elements.inference.decoders.whole import WholePicture
from elements.inference.engines.base import DeviceEngine, engine_name, is_class_path
from elements.inference.errors import FrameError as FrameError
from elements.inference.errors import ModelError, blaming, brief
from elements.inference.finish import finish, finish_whole
from elements.inference.frame import Frame
from elements.inference.letterbox import Size, smallest_input
from elements.inference.loading import RUN_PIXELS, LoadedModel, load_model
from elements.inference.own import open_own
from elements.inference.postprocess import PostprocessedModel
from elements.inference.preprocess import Preprocessor
from elements.inference.tasks import Task
from elements.metadata.batch_detections import BatchDetections
from elements.metadata.detections import Detections, FloatArray
from elements.metadata.placement import Placements

if TYPE_CHECKING:
    from elements.inference.gpu.path import DevicePath

log = logging.getLogger("gstorch.inference")

Found = tuple[Sequence[Detections], int]
"""What was found in each frame of a run, and number of rows that are no numbers."""
PARTS_PER_THREAD = 4  # of many runs, so that a thread that is done early takes another part


class Model(Protocol):
    """What pyinfer runs. A class of your own has the same three methods (see `elements.inference.own`).

    Optional attributes: ``version`` (stands in every result, see `elements.inference.swap.version`), ``names`` (class
    names by number), ``confidence`` and ``iou`` (set when the element's properties change), ``stats`` (`ModelStats`),
    and ``overlaps``. Where that is true the model also has ``submit(frames)``, which begins and returns at once, and
    ``collect(work)``, which waits for what ``submit`` gave and returns what ``infer`` does. Both are called in the same
    order, from two threads, with a few batches on the way.
    A model with ``forget(source_id)`` is told when a source has ended.
    """

    def load(self) -> None:
        """Get ready to infer; called once, before the first frame. Raise `ModelError` with a text for the user."""
        ...

    def infer(self, frames: Sequence[Frame]) -> Sequence[Detections]:
        """One `Detections` per frame, in order, boxes in pixels of the source frame: a list, or `BatchDetections`."""
        ...

    def close(self) -> None:
        """Free what `load` took."""
        ...


@dataclass(slots=True)
class ModelStats:
    """Counts since `DetectionModel.load`.

    Attributes:
        frames: frames inferred.
        nan: output rows left out since a score or box was not a finite number.
    """

    frames: int = 0
    nan: int = 0


@dataclass(frozen=True, slots=True)
class _Run:
    """Frames that go through the network together, and their places in the call."""

    frames: Sequence[Frame]
    places: Sequence[int]
    size: Size


@dataclass(frozen=True, slots=True)
class Work:
    """What `DetectionModel.submit` gives: the runs, and for a device what it gave for each."""

    frames: int
    runs: list[_Run]
    pending: list[Any] | None


class DetectionModel:
    """A model from a file, of any task (`elements.inference.tasks`).

    With NumPy engines the frames of a call run in parallel, one thread per core, each through letterbox, network,
    decoding and suppression; with torch ones they run together on the device (`elements.inference.gpu.path`).

    >>> model = DetectionModel(ModelConfig("yolox_nano_416.onnx"))
    >>> model.load()
    >>> model.infer([ArrayFrame(picture)])[0].boxes

    Attributes:
        confidence: lowest score that counts; may be changed at any time.
        iou: overlap above which the lesser box goes; may be changed at any time.
        names: class names by number, known after `load`.
        task: what the model does, known after `load`.
        stats: counts since `load`.
    """

    def __init__(self, config: ModelConfig) -> None:
        self.config = config
        self.confidence = config.confidence
        self.iou = config.iou
        self.names: tuple[str, ...] = ()
        self.task: Task | None = None
        self.stats = ModelStats()
        self._network: LoadedModel | None = None
        self._threads = len(os.sched_getaffinity(0))
        self._pool: ThreadPoolExecutor | None = None
        self._device: DevicePath | None = None

    def load(self) -> None:
        """Load the file, tell its layout, and run it once so that the first frame is fast.

        Raises:
            ModelError: if the model cannot be used; the text starts with its path.
        """
        try:
            self._network = load_model(self.config)
            self._device = self._device_path(self._network)
        except ModelError as error:
            raise ModelError(f"model '{self.config.path}': {error}") from error
        self._preprocessor = Preprocessor(self._network.engine.spec, self._network.preprocess)
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="infer")
        self.names = self._network.names
        self.task = self._network.decoder.task
        self.stats = ModelStats()

    @property
    def overlaps(self) -> bool:
        """Whether `submit` returns while the work goes on, on a GPU."""
        return self._device is not None and self._device.is_gpu

    def infer(self, frames: Sequence[Frame]) -> Sequence[Detections]:
        """One `Detections` per frame, in order; boxes in source pixels, cut at the frame's edges, best first.

        Raises:
            FrameError: if one of the frames fails.
            RuntimeError: if the model is not loaded.
        """
        return self.collect(self.submit(frames))

    def submit(self, frames: Sequence[Frame]) -> Work:
        """Queue frames on the device; without one, `collect` does everything. Errors as `infer`."""
        if self._network is None:
            raise RuntimeError("the model is not loaded: call load() first")
        runs = self._plan(frames, self._network)
        return Work(len(frames), runs, None if self._device is None else self._submit_runs(self._device, runs))

    def collect(self, work: Work) -> Sequence[Detections]:
        """What `infer` gives for the frames of `submit`. Errors as `infer`."""
        assert self._pool is not None
        runs = work.runs
        results: Iterable[Found]
        if self._device is not None and work.pending is not None:
            results = self._collect_runs(self._device, runs, work.pending)
        else:  # a single run stays on the caller's thread: handing it over would gain nothing
            results = map(self._execute, runs) if len(runs) == 1 else self._execute_in_parallel(self._pool, runs)
        parts, invalid = zip(*results, strict=True) if runs else ((), ())
        self._count(work.frames, sum(invalid))
        in_order = len({run.size for run in runs}) == 1
        if in_order and all(isinstance(part, BatchDetections) for part in parts):
            return BatchDetections.joined(parts)
        by_place: dict[int, Detections] = {}
        for run, found in zip(runs, parts, strict=True):
            by_place.update(zip(run.places, found, strict=True))
        return [by_place[place] for place in range(work.frames)]

    def close(self) -> None:
        """Stop the threads and drop the network."""
        if self._pool is not None:
            self._pool.shutdown()
        if self._device is not None:
            self._device.close()
        if self._network is not None:
            self._network.engine.close()
        was_on_gpu = self.overlaps
        self._pool = self._network = self._device = None
        if was_on_gpu:
            from elements.inference.gpu.runners import give_memory_back

            give_memory_back()

    def _device_path(self, network: LoadedModel) -> DevicePath | None:
        """What runs the frames on the engine's device, warmed up; ``None`` for engines that take NumPy arrays."""
        if not isinstance(network.engine, DeviceEngine):
            return None
        from elements.inference.gpu.path import DevicePath

        path = DevicePath(network)
        started = time.monotonic()
        try:
            path.warm_up(self.config.batch_size or 1, self.config.compile)
        except Exception as error:  # torch's and CUDA's errors share no base class but this
            if self.config.compile:  # the trial run has shown that it works as it is
                raise ModelError(f"it cannot be compiled: {brief(error)}. Leave compile out") from error
            raise ModelError(f"it fails in its first run: {brief(error)}. {network.engine.advice}") from error
        if self.config.compile:
            log.info("%s: compiled in %.1f s", self.config.path, time.monotonic() - started)
        return path

    def _plan(self, frames: Sequence[Frame], network: LoadedModel) -> list[_Run]:
        """Group frames by input size and split the groups into runs.

        A fixed batch decides itself. Where any batch goes, engines on the CPU run frames one by one (see
        `engines.onnx`), and only small inputs, as objects' are, together.
        """
        spec = network.engine.spec
        together = network.engine.on_gpu or isinstance(network.engine, DeviceEngine)
        runs = []
        for size, places in self._by_size(frames, network, together).items():
            free = (self.config.batch_size or len(frames)) if together else self._together_on_cpu(len(places), size)
            batch = spec.batch or min(free, spec.max_batch or free)
            parts = [places[i : i + batch] for i in range(0, len(places), batch)]
            runs += [_Run(taken(frames, part), part, size) for part in parts]
        return runs

    @staticmethod
    def _by_size(frames: Sequence[Frame], network: LoadedModel, together: bool) -> Mapping[Size, Sequence[int]]:
        """Places of the frames by the size of the input that they need."""
        if not len(frames):
            return {}
        if not network.stride or (together and isinstance(frames, CropBatch)):  # crops have all shapes: one run
            return {network.size: range(len(frames))}
        sources = [(frame.width, frame.height) for frame in frames]
        mode = network.preprocess.letterbox
        sizes = {source: smallest_input(source, network.size, network.stride, mode) for source in set(sources)}
        groups: dict[Size, list[int]] = {}
        for place, source in enumerate(sources):
            groups.setdefault(sizes[source], []).append(place)
        return groups

    def _together_on_cpu(self, frames: int, size: Size) -> int:
        """How many of ``frames`` of an input of ``size`` share a run, so that all threads have the same number."""
        most = max(1, RUN_PIXELS // (size[0] * size[1]))
        runs = -(-frames // most)
        return -(-frames // (-(-runs // self._threads) * self._threads)) or 1

    def _execute_in_parallel(self, pool: ThreadPoolExecutor, runs: Sequence[_Run]) -> Iterable[Found]:
        """Hand the runs over in few parts, where there are many small ones: crops of objects."""
        size = max(1, len(runs) // (PARTS_PER_THREAD * self._threads))
        parts = [runs[i : i + size] for i in range(0, len(runs), size)]
        return itertools.chain.from_iterable(pool.map(lambda part: [self._execute(run) for run in part], parts))

    def _execute(self, run: _Run) -> Found:
        """Letterbox, network and all that follows, on the calling thread."""
        assert self._network is not None
        network = self._network
        with blaming(run.frames[0]):
            # The rows of a fixed batch that are left over hold old pictures; what comes out for them is not read.
            tensor = self._preprocessor.tensor(network.engine.spec.batch or len(run.frames), run.size)
            placements = self._preprocessor.fill_all(run.frames, tensor, run.size)
            given = network.engine.run(tensor)
            outputs = [given[place].astype(np.float32, copy=False)[: len(run.frames)] for place in network.outputs]
            return self._read(network, run, outputs, placements)

    def _read(self, network: LoadedModel, run: _Run, outputs: Sequence[FloatArray], placements: Placements) -> Found:
        """What a run's outputs, batch first, say."""
        decoder = network.decoder
        if isinstance(decoder, WholePicture):
            return finish_whole(decoder.said(outputs[0]), placements.sources, self.confidence, network.keep)
        decoded = decoder.decode_batch(outputs, run.size, self.confidence)
        own = zip(*outputs, strict=True)
        results = []
        for frame, found, arrays, placement in zip(run.frames, decoded, own, placements, strict=True):
            with blaming(frame):
                results.append(finish(found, arrays, decoder, run.size, placement, self.iou, network.keep))
        return results, sum(found.invalid for found in decoded)

    def _submit_runs(self, device: DevicePath, runs: Sequence[_Run]) -> list[Any]:
        """Queue all runs, one after the other."""
        pending = []
        for run in runs:
            with blaming(run.frames[0]):
                pending.append(device.submit(run.frames, run.size, self.confidence, self.iou))
        return pending

    @staticmethod
    def _collect_runs(device: DevicePath, runs: Sequence[_Run], pending: Sequence[Any]) -> list[Found]:
        """Wait for all runs; the same as `_execute` for each."""
        results = []
        for run, one in zip(runs, pending, strict=True):
            with blaming(run.frames[0]):
                results.append(device.collect(one))
        return results

    def _count(self, frames: int, invalid: int) -> None:
        if invalid and not self.stats.nan:
            log.warning(
                "model '%s' gives scores or boxes that are not finite numbers (%d in this batch): they are left out "
                "and counted; this is said once",
                self.config.path,
                invalid,
            )
        self.stats.frames += frames
        self.stats.nan += invalid


def open_model(config: ModelConfig) -> Model:
    """The model that ``config.path`` names, not loaded yet: a file, or ``package.module:Class`` of your own.

    Raises:
        ModelError: if the path is neither.
        Exception: whatever the module or class of your own raises.
    """
    if is_class_path(config.path):
        own: Model = open_own(config, _network_model)
        return own
    try:
        engine_name(config)
    except ModelError as error:
        raise ModelError(f"model '{config.path}': {error}") from error
    return _network_model(config)


def _network_model(config: ModelConfig) -> Model:
    """A network, with a decoder of ours or a function of the user's behind it."""
    return DetectionModel(config) if config.postprocess is None else PostprocessedModel(config)
