"""What runs one input shape: as a captured CUDA graph, or call by call."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import torch

from elements.inference.engines.base import DeviceEngine, Forward
from elements.inference.errors import brief
from elements.inference.gpu.letterbox import TABLE_COLUMNS
from elements.inference.letterbox import Size

WARM_UPS = 3  # TorchScript settles on its code in the second run; cuDNN picks its algorithms in the first
Post = Callable[[list[torch.Tensor]], torch.Tensor]
Letterbox = Callable[[torch.Tensor, torch.Tensor], None]
_checking = threading.Lock()  # what warnings go to is one setting of the whole process
_capturing = threading.Lock()  # a capture fails if torch gives memory back meanwhile, as each does at its beginning


class Runner:
    """A fixed input tensor, and from it to the packed detections.

    Attributes:
        input: the network's input as its ``spec`` declares it.
        planes: the same memory as (B, 3, H, W).
        table: (B, `TABLE_COLUMNS`) int64, what the fused letterbox reads; no pictures at first.
    """

    def __init__(
        self,
        engine: DeviceEngine,
        batch: int,
        size: Size,
        post: Post,
        forward: Forward | None = None,
        letterbox: Letterbox | None = None,
    ) -> None:
        """Set up for ``batch`` pictures of ``size`` (width, height).

        Args:
            engine: has the network.
            batch: number of pictures.
            size: (width, height) of the input.
            post: makes packed detections of the network's outputs.
            forward: the network, if not the engine's.
            letterbox: writes the pictures of ``table`` into ``planes`` at the beginning of each run, if given.
        """
        dtype = torch.from_numpy(engine.spec.dtype.type(0).reshape(1)).dtype
        self.input = torch.zeros(engine.spec.shape(batch, size), dtype=dtype, device=engine.device)
        if engine.channels_last and not engine.spec.channels_last:
            self.input = self.input.contiguous(memory_format=torch.channels_last)
        self.planes = self.input.permute(0, 3, 1, 2) if engine.spec.channels_last else self.input
        self.table = torch.zeros((batch, TABLE_COLUMNS), dtype=torch.int64, device=engine.device)
        self._letterbox = letterbox
        self._forward: Forward = forward or engine.forward
        self._post = post

    def run(self) -> torch.Tensor:
        """The packed detections of what `input` holds, queued on the current stream."""
        if self._letterbox is not None:
            self._letterbox(self.table, self.planes)
        return self._post(self._forward(self.input))


class CaptureError(Exception):
    """A network does something that a CUDA graph cannot hold. The text says what."""


class GraphRunner(Runner):
    """The same from a CUDA graph: one launch for letterbox, network, decoding and suppression.

    It captures a twin of the network, whose inner state no other shape touches. Graphs of one engine share a memory
    pool, as they never run at the same time; what one gives is valid until the next one runs.
    """

    def __init__(
        self,
        engine: DeviceEngine,
        batch: int,
        size: Size,
        post: Post,
        pool: Any,
        forward: Forward | None = None,
        letterbox: Letterbox | None = None,
    ) -> None:
        """Warm up and capture on the current stream. ``forward``, if given, is a network for this shape alone.

        Raises:
            CaptureError: if the network cannot be captured.
        """
        super().__init__(engine, batch, size, post, forward or engine.twin(), letterbox)
        stream = torch.cuda.current_stream(engine.device)
        # float32 is asked for where answers are to be those of the CPU; TF32 moves boxes by tenths of a pixel
        with torch.backends.cudnn.flags(enabled=True, benchmark=True, allow_tf32=False):
            for _ in range(WARM_UPS):
                super().run()
            self._check_waits()
            stream.synchronize()
            self._graph = torch.cuda.CUDAGraph()
            # thread_local: decoders allocate in other threads meanwhile, which must not break the capture.
            try:
                with (
                    _capturing,
                    torch.cuda.graph(self._graph, pool=pool, stream=stream, capture_error_mode="thread_local"),
                ):
                    self._packed = super().run()
            except RuntimeError as error:
                raise CaptureError(brief(error)) from error

    def run(self) -> torch.Tensor:
        """See `Runner.run`. The result is overwritten by the next run."""
        self._graph.replay()
        return self._packed

    def _check_waits(self) -> None:
        """Run once and look for waits on the device, found before capturing since a failed capture leaves traces.

        Torch warns of them, whichever thread waits: while another model is at work, only this thread's count.
        """
        waits = []
        own = threading.get_ident()

        def note(message: Warning | str, *_: Any, **__: Any) -> None:
            # Turning the mode on warns as well, that it is a prototype: only this sentence is about the network.
            if threading.get_ident() == own and "called a synchronizing CUDA operation" in str(message):
                waits.append(message)

        with _checking, warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = note
            before = torch.cuda.get_sync_debug_mode()
            torch.cuda.set_sync_debug_mode("warn")
            try:
                super().run()
            finally:
                torch.cuda.set_sync_debug_mode(before)
        if waits:
            raise CaptureError("it waits for the GPU or copies from the host while it runs")


def give_memory_back() -> None:
    """Free what torch keeps for later. It keeps that for each stream, also for those of models that are gone."""
    with _capturing:
        torch.cuda.empty_cache()
