"""Frames to detections on one torch device: one letterbox, one network run, one copy to the host per batch."""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import torch

from elements.inference.crops import CropBatch, scaled_regions, sizes_of
from elements.inference.engines.base import DeviceEngine, Forward
from elements.inference.errors import blaming
from elements.inference.frame import DevicePlanes, Frame
from elements.inference.gpu.detect import Detector, Found, HostDetector
from elements.inference.gpu.letterbox import (
    Pixels,
    check_device,
    check_picture,
    fill_table,
    has_triton,
    letterbox,
)
from elements.inference.gpu.nms import suppress
from elements.inference.gpu.rgb import to_rgb
from elements.inference.gpu.runners import CaptureError, GraphRunner, Post, Runner
from elements.inference.letterbox import LetterboxMode, Size, place_all
from elements.inference.loading import LoadedModel
from elements.metadata.detections import IntArray
from elements.metadata.placement import Placement, Placements

log = logging.getLogger("gstorch.inference")

CANDIDATES = 512  # per frame at first; a fuller frame doubles it for good
OFTEN = 50  # runs of a batch size before it gets a graph of its own where a larger one serves
EXACT_BATCHES = 4  # sizes up to this run as they are, larger ones are rounded up to a multiple of it


@dataclass(slots=True)
class Pending:
    """A batch on its way. Its frames and pictures are held until it is collected.

    Attributes:
        frames: the frames, in order.
        size: (width, height) of the network's input.
        thresholds: confidence and iou that it was submitted with.
        placements: where each picture lies in it.
        pictures: what the device reads.
        packed: where the result arrives on the host.
        table: what the fused letterbox reads, as it was on the host; ``None`` where that is not used.
        arrived: is set when the result is there; ``None`` on the CPU.
    """

    frames: Sequence[Frame]
    size: Size
    thresholds: tuple[float, float]
    placements: Placements
    pictures: list[Any]
    packed: torch.Tensor
    table: torch.Tensor | None
    arrived: Any


@dataclass(slots=True)
class DevicePath:
    """Runs batches for a loaded model whose engine works on torch tensors.

    `submit` queues everything on a stream of its own and returns at once; `collect` waits for one batch. So a caller
    may have several batches on the way, in order. One thread may submit while another one collects.

    Attributes:
        network: the loaded model.
    """

    network: LoadedModel
    _engine: DeviceEngine = field(init=False)
    _stream: Any = field(init=False, default=None)
    _pool: Any = field(init=False, default=None)
    _fused: bool = field(init=False)
    _detector: Detector | HostDetector = field(init=False)
    _thresholds: torch.Tensor = field(init=False)
    _in_force: tuple[float, float] = field(init=False, default=(-1.0, -1.0))
    _most: int = field(init=False, default=CANDIDATES)
    _runners: dict[tuple[int, Size, int], Runner] = field(init=False, default_factory=dict)
    _compiled: dict[tuple[int, Size], Forward] = field(init=False, default_factory=dict)
    _shapes: dict[Size, list[tuple[int, ...]]] = field(init=False, default_factory=dict)  # of outputs, by input size
    _asked: Counter[tuple[int, Size, int]] = field(init=False, default_factory=Counter)  # for runners there are not
    _spare: dict[tuple[tuple[int, ...], torch.dtype], list[torch.Tensor]] = field(init=False, default_factory=dict)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)  # who holds it queues a batch

    def __post_init__(self) -> None:
        self._engine = cast(DeviceEngine, self.network.engine)
        device = self._engine.device
        self._fused = device.type == "cuda" and has_triton()
        if device.type == "cuda":
            self._stream = torch.cuda.Stream(device)
            self._pool = torch.cuda.graph_pool_handle()
            if not self._fused:
                log.warning(
                    "Triton is not installed, so kernels are not fused and nothing is captured: pip install triton"
                )
        overlaps = suppress
        if self._fused:
            from elements.inference.gpu.nms_triton import suppress_fused as overlaps
        allowed = None
        if self.network.keep:
            allowed = torch.zeros(max(self.network.keep) + 1, dtype=torch.bool)
            allowed[list(self.network.keep)] = True
            allowed = allowed.to(device)
        self._thresholds = torch.zeros(2, dtype=torch.float32, device=device)
        decoder = self.network.decoder
        if Detector.fits(decoder):
            self._detector = Detector(decoder, overlaps, self._thresholds, allowed)
        else:
            self._detector = HostDetector(decoder, self.network.keep)

    @property
    def is_gpu(self) -> bool:
        """Whether the device works beside the host."""
        return self._stream is not None

    def warm_up(self, batch: int, compiled: bool = False) -> None:
        """Get ready for ``batch`` frames of the full input size, so that the first batch is fast.

        With ``compiled`` these run as compiled code. Whatever else comes runs as it would without: compiling takes too
        long while frames wait.
        """
        batch, size = self._rounded(batch), self.network.size
        if compiled:
            self._compiled[batch, size] = self._engine.compiled()
        with self._on_device():
            self._runner(batch, size).run()
            if self._stream is not None:
                self._stream.synchronize()

    def submit(self, frames: Sequence[Frame], size: Size, confidence: float, iou: float) -> Pending:
        """Queue ``frames`` as one batch of a ``size`` (width, height) input.

        Raises:
            FrameError: if a frame's picture cannot be had or used.
        """
        with self._lock:
            return self._submit(frames, size, confidence, iou)

    def _submit(self, frames: Sequence[Frame], size: Size, confidence: float, iou: float) -> Pending:
        caller = torch.cuda.current_stream(self._engine.device) if self._stream is not None else None
        with self._on_device():
            self._set_thresholds(confidence, iou)
            options = self.network.preprocess
            placements = _placements(frames, size, options.letterbox)
            pictures, pixels = self._pictures(frames, placements)
            if self._stream is not None and any(isinstance(picture, torch.Tensor) for picture in pictures):
                self._stream.wait_stream(caller)  # who made the pictures may still be at it
            runner = self._runner(self._rounded(len(frames)), size)
            table = None
            if self._fused:
                table = self._take(tuple(runner.table.shape), torch.int64)
                rgb = fill_table(pixels, placements, table.numpy(), self._engine.device)
                runner.table.copy_(table, non_blocking=True)
                if rgb:
                    self._write_pictures(runner.table, runner.planes, rgb=True)
            else:
                letterbox(pictures, placements, runner.planes, options)
            result = runner.run()[: len(frames)]
            packed = self._take(tuple(result.shape), torch.float32)
            packed.copy_(result, non_blocking=True)
            arrived = None
            if self._stream is not None:
                arrived = torch.cuda.Event(blocking=True)
                arrived.record(self._stream)
        return Pending(frames, size, (confidence, iou), placements, pictures, packed, table, arrived)

    def collect(self, pending: Pending) -> Found:
        """Wait for a batch: detections of each frame in source pixels, and number of broken rows."""
        if pending.arrived is not None:
            pending.arrived.synchronize()
        packed = pending.packed.numpy()
        fullest = self._detector.overflow(packed)
        if fullest:  # more candidates than fit: run again with room for them
            self._most = max(self._most, 1 << (fullest - 1).bit_length())
            log.debug("%d candidates in a frame: room for %d from now on", fullest, self._most)
            self._give_back(pending)
            return self.collect(self.submit(pending.frames, pending.size, *pending.thresholds))
        shapes = self._shapes[pending.size]
        found = self._detector.unpack(packed, shapes, pending.placements, pending.size, pending.thresholds)
        self._give_back(pending)
        return found

    def close(self) -> None:
        """Free graphs and buffers."""
        if self._stream is not None:
            self._stream.synchronize()
        self._runners.clear()
        self._compiled.clear()
        self._spare.clear()

    def _pictures(
        self, frames: Sequence[Frame], placements: Placements
    ) -> tuple[list[Any], Sequence[Pixels | DevicePlanes] | IntArray]:
        """The frames' pictures on the device: where they lie, or scaled on the host and copied.

        Where kernels are fused, also where the pixels of each lie; the parts of a frame then share its picture.
        """
        if self._fused and isinstance(frames, CropBatch):
            found = self._pictures_of_crops(frames)
            if found is not None:
                return found
        pictures: list[Any] = []
        for place, frame in enumerate(frames):
            with blaming(frame):
                picture = self._picture(frame)
                pictures.append(self._uploaded(frame, placements[place]) if picture is None else picture)
        if not self._fused:
            return pictures, []
        return pictures, [one if isinstance(one, DevicePlanes) else Pixels.of(one) for one in pictures]

    def _uploaded(self, frame: Frame, placement: Placement) -> torch.Tensor:
        """The frame's picture, scaled on the host and copied to the device."""
        scaled = np.ascontiguousarray(frame.resized(int(placement.width), int(placement.height)))
        return torch.from_numpy(scaled).to(self._engine.device)

    def _pictures_of_crops(self, crops: CropBatch) -> tuple[list[Any], IntArray] | None:
        """The pictures that crops are cut from, and the rows of `fill_table`; ``None`` if not all are on the device."""
        pictures, rows = [], []
        for frame, _ in crops.by_frame():
            with blaming(frame):
                picture = self._picture(frame)
            if picture is None:
                return None
            pictures.append(picture)
        planar = [number for number, picture in enumerate(pictures) if isinstance(picture, DevicePlanes)]
        for number, rgb in zip(planar, to_rgb([pictures[number] for number in planar]), strict=True):
            pictures[number] = rgb
        for picture, (frame, part) in zip(pictures, crops.by_frame(), strict=True):
            pixels = Pixels.of(picture)
            regions = scaled_regions(crops.regions[part], (frame.width, frame.height), (pixels.width, pixels.height))
            rows.append(pixels.parts(regions))
        return pictures, np.concatenate(rows)

    def _picture(self, frame: Frame) -> Any:
        """The frame's picture if it lies on the device, checked: 4:2:0 or RGB; ``None`` if it does not."""
        device = self._engine.device
        planes = None if self._stream is None else getattr(frame, "device_planes", None)
        if planes is not None:
            if planes.device != device.index:
                check_device(torch.device("cuda", planes.device), device)
            return planes
        if self._fused and (complete := getattr(frame, "device_picture", None)) is not None:
            check_picture(complete, self._engine.device)
            return complete  # no tensor is made: for many frames that takes longer than the kernel
        picture = getattr(frame, "tensor", None)
        if picture is None or picture.device.type != self._engine.device.type:
            return None
        check_picture(picture, self._engine.device)
        return picture

    def _rounded(self, frames: int) -> int:
        """The batch that ``frames`` frames run in: as few different ones as graphs are worth keeping."""
        spec = self._engine.spec
        if spec.batch:
            return spec.batch
        if self._engine.can_capture and self._fused and frames > EXACT_BATCHES:
            frames = -(-frames // EXACT_BATCHES) * EXACT_BATCHES
        return max(spec.min_batch, min(frames, spec.max_batch or frames))

    def _runner(self, batch: int, size: Size) -> Runner:
        """What runs ``batch`` frames. A larger graph serves until a size has come often enough for one of its own, as
        making one takes as long as hundreds of runs: the last batches of files, frames of a source that is late.
        """
        key = (batch, size, self._most)
        if key not in self._runners:
            self._asked[key] += 1
            larger = [(b, s, m) for b, s, m in self._runners if (s, m) == (size, self._most) and b > batch]
            if larger and isinstance(self._runners[min(larger)], GraphRunner) and self._asked[key] < OFTEN:
                return self._runners[min(larger)]
            detector, places, most = self._detector, self.network.outputs, self._most

            def post(outputs: list[torch.Tensor]) -> torch.Tensor:
                read = [outputs[place] for place in places]
                self._shapes[size] = [tuple(output.shape[1:]) for output in read]
                return detector.pack(read, size, most)

            self._runners[key] = self._make_runner(batch, size, post)
        return self._runners[key]

    def _make_runner(self, batch: int, size: Size, post: Post) -> Runner:
        forward = self._compiled.get((batch, size))
        write = self._write_pictures if self._fused else None
        if self._engine.can_capture and self._fused:
            try:
                return GraphRunner(self._engine, batch, size, post, self._pool, forward, write)
            except CaptureError as error:
                self._engine.can_capture = False
                # As text: whoever keeps the record would keep with the exception what was to be captured.
                why = str(error)
                log.warning("the model cannot run from a CUDA graph, so it runs call by call and slower: %s", why)
        return Runner(self._engine, batch, size, post, forward, write)

    def _write_pictures(self, table: torch.Tensor, planes: torch.Tensor, rgb: bool = False) -> None:
        """Run one of the fused kernels on all rows of a runner's table, each of which it may skip."""
        from elements.inference.gpu.letterbox_triton import letterbox_fused

        letterbox_fused(table, len(table) * rgb, len(table), planes, self.network.preprocess)

    def _set_thresholds(self, confidence: float, iou: float) -> None:
        if (confidence, iou) != self._in_force:
            self._thresholds.copy_(torch.tensor([confidence, iou], dtype=torch.float32))
            self._in_force = (confidence, iou)

    def _take(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """A tensor on the host (pinned beside CUDA): a spare one, or a new one."""
        spare = self._spare.setdefault((shape, dtype), [])
        return spare.pop() if spare else torch.empty(shape, dtype=dtype, pin_memory=self._stream is not None)

    def _give_back(self, pending: Pending) -> None:
        for spare in (pending.packed, pending.table):
            if spare is not None:
                self._spare[tuple(spare.shape), spare.dtype].append(spare)
        pending.pictures.clear()

    @contextlib.contextmanager
    def _on_device(self) -> Any:
        """Work without gradients, on our stream."""
        with torch.inference_mode(), torch.cuda.stream(self._stream):
            yield


def _placements(frames: Sequence[Frame], network: Size, mode: LetterboxMode) -> Placements:
    """Where each lies in the input; not to be written."""
    sizes = sizes_of(frames)
    if isinstance(frames, CropBatch):  # whose sizes do not come again
        return place_all(sizes, network, mode)
    return _known_placements(sizes.tobytes(), network, mode)


@functools.lru_cache(256)  # the batches of a stream are alike
def _known_placements(sizes: bytes, network: Size, mode: LetterboxMode) -> Placements:
    """`place_all` of what `sizes_of` gives."""
    return place_all(np.frombuffer(sizes, np.int64).reshape(-1, 2), network, mode)
