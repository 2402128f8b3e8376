"""The frames of a batch as pyinfer hands them to a model, wherever the batch comes from."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from elements.base import ElementError, Gst, all_of
from elements.inference.frame import ArrayFrame, Frame, Image, Region
from elements.metadata.placement import Placement
from elements.portable import frames as portable
from elements.portable.carrier import batch_of

_NO_BATCH = "the buffer carries no batch metadata; put an nvstreammux before this element"
_HOST = "CPU"  # Tensor.device_type


class BatchFrame(Frame, Protocol):
    """A frame with its place in the batch.

    Attributes:
        batch_id: number of the frame in its batch, as in the metadata.
        pad_index: pad of the stream mux that it came through.
        placement: where the source's picture lies in the frame that the metadata speaks of.
    """

    batch_id: int

    @property
    def pad_index(self) -> int: ...

    @property
    def placement(self) -> Placement: ...


class FrameReader:
    """Finds the frames in the batches that reach an element.

    Args:
        element: the element; its pipeline has the stream mux.
        api: the pyservicemaker module in use.
        names: of the sources, by id.
    """

    def __init__(self, element: Gst.Element, api: Any, names: Sequence[str] = ()) -> None:
        self._element, self._api, self._names = element, api, names
        self._source_of_pad: dict[int, int] = {}

    def frames_of(self, buffer: Gst.Buffer) -> list[BatchFrame]:
        """The frames of ``buffer``. They are valid until the element passes it on.

        Raises:
            ElementError: if the buffer carries no batch.
        """
        frames: list[BatchFrame]
        if batch_of(buffer) is not None:
            frames = list(portable.frames_of(buffer, self._names))
        else:
            surfaces = self._api.Buffer(buffer)
            frames = [
                ExtractedFrame(surfaces, meta, self._padded, self._names) for meta in surfaces.batch_meta.frame_items
            ]
            if not frames:
                raise ElementError(_NO_BATCH)
        for frame in frames:
            self._source_of_pad[frame.pad_index] = frame.source_id
        return frames

    def source_of_pad(self, pad_index: int) -> int | None:
        """Id of the source whose frames came through a pad of the stream mux, ``None`` if there were none."""
        return self._source_of_pad.get(pad_index)

    @cached_property
    def _padded(self) -> bool:
        return mux_pads(self._element)


def refuse_rgba(caps: Gst.Caps) -> None:
    """Tell an element that reads pictures that its pad has RGBA frames, which DeepStream does not hand to Python.

    Raises:
        ElementError: if it has.
    """
    if caps[0].get_value("format") == "RGBA":
        raise ElementError(
            "its pad has RGBA frames, and a model reads RGB: put nvvideoconvert and the capsfilter "
            "video/x-raw(memory:NVMM),format=RGB before this element"
        )


def mux_pads(element: Gst.Element) -> bool:
    """Whether the stream mux of an element's pipeline keeps the aspect ratio by padding, which no metadata tells.

    Raises:
        ElementError: if there are several muxes that differ.
    """
    top: Any = element
    while top.get_parent() is not None:
        top = top.get_parent()
    muxes = all_of(top.iterate_all_by_element_factory_name("nvstreammux")) if isinstance(top, Gst.Bin) else []
    # the mux that USE_NEW_NVSTREAMMUX chooses has no such property and leaves frames as they are
    found = {bool(mux.get_property("enable-padding")) for mux in muxes if mux.find_property("enable-padding")}
    if len(found) > 1:
        raise ElementError("the pipeline's nvstreammux elements differ in enable-padding; give them the same value")
    return found == {True}


class ExtractedFrame:
    """A frame of DeepStream's batch: metadata copied, the picture borrowed from the buffer when it is asked for."""

    def __init__(self, buffer: Any, meta: Any, padded: bool, names: Sequence[str] = ()) -> None:
        self._buffer, self._padded = buffer, padded
        self.batch_id: int = meta.batch_id
        self.width: int = meta.source_width
        self.height: int = meta.source_height
        self.source_id: int = meta.source_id
        self.pad_index: int = meta.pad_index
        self.frame_number: int = meta.frame_number
        self.pts: int = meta.buffer_pts
        self.utc_ns: int = meta.ntp_timestamp
        self.source = names[self.source_id] if self.source_id < len(names) else ""

    @cached_property
    def _surface(self) -> Any:
        """pyservicemaker's Tensor of the whole surface, padding of the mux included: (H, W, 3) uint8 RGB, for DLPack.

        Raises:
            ElementError: if the surface is not RGB.
        """
        tensor = self._buffer.extract(self.batch_id)
        if not tensor:
            raise ElementError(
                "the frame's pixels cannot be had: only RGB frames in GPU memory can be read, not RGBA, NV12 or system "
                "memory; put nvvideoconvert and the capsfilter video/x-raw(memory:NVMM),format=RGB before this element"
            )
        return tensor

    @cached_property
    def placement(self) -> Placement:
        """Where the source's picture lies on the surface."""
        height, width = self._surface.shape[:2]
        return Placement.of((self.width, self.height), (width, height), self._padded)

    @property
    def in_gpu_memory(self) -> bool:
        """Whether the picture can only be had through torch."""
        return bool(self._surface.device_type != _HOST)

    @property
    def tensor(self) -> Any:
        """The source's picture as a torch tensor, no copy; ``None`` in host memory, or where torch is not in use."""
        torch = sys.modules.get("torch")
        return None if torch is None or not self.in_gpu_memory else self._tensor

    @cached_property
    def _tensor(self) -> Any:
        return sys.modules["torch"].from_dlpack(self._surface)[self._active]

    def resized(self, width: int, height: int, out: Image | None = None, region: Region | None = None) -> Image:
        """See `elements.inference.frame.Frame.resized`; for frames in host memory.

        Raises:
            ElementError: if the frame is in GPU memory.
        """
        if self.in_gpu_memory:
            raise ElementError(
                "the frame is in GPU memory, and the model's engine reads host memory; use an engine for device cuda"
            )
        picture: Image = np.asarray(np.from_dlpack(self._surface), np.uint8)[self._active]  # no copy
        if region is not None:
            sx, sy = self.placement.scale
            region = (region[0] * sx, region[1] * sy, region[2] * sx, region[3] * sy)
        return ArrayFrame(picture).resized(width, height, out, region)

    @property
    def _active(self) -> tuple[slice, slice]:
        """Rows and columns of the surface that the source's picture covers."""
        p = self.placement
        left, top = round(p.left), round(p.top)
        return slice(top, top + round(p.height)), slice(left, left + round(p.width))
