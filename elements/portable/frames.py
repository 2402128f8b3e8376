"""The frames of a batch as models see them: `elements.inference.frame.Frame` over a surface and its metadata."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elements.base import Gst
from elements.inference.frame import DevicePlanes, Image, Region
from elements.metadata.placement import Placement
from elements.portable.carrier import writable_batch
from elements.portable.device_array import DeviceArray
from elements.portable.meta import FrameMeta
from elements.portable.surface import Surface


class BatchFrame:
    """One frame of a batch.

    The source's picture is taken from where it lies on the surface, so padding that the stream mux added is never
    seen, and neither the mux's size nor the surface's format matters.

    Attributes:
        source: name of the source, empty if it has none.
        placement: where the source's picture lies on the surface, i.e. in the frame that the metadata speaks of.
        batch_id, source_id, pad_index: as in the metadata.
    """

    __slots__ = ("_meta", "_surface", "_tensor", "batch_id", "pad_index", "placement", "source", "source_id")

    def __init__(self, meta: FrameMeta, surface: Surface, source: str = "") -> None:
        self._meta = meta
        self._tensor: Any = None
        self.source = source
        self._surface = surface
        self.batch_id, self.source_id, self.pad_index = meta.batch_id, meta.source_id, meta.pad_index
        self.placement: Placement = surface.placement

    @property
    def width(self) -> int:
        return self.placement.source_width

    @property
    def height(self) -> int:
        return self.placement.source_height

    @property
    def frame_number(self) -> int:
        return self._meta.frame_number

    @property
    def pts(self) -> int:
        return self._meta.buffer_pts

    @property
    def utc_ns(self) -> int:
        return self._meta.ntp_timestamp

    @property
    def device_planes(self) -> DevicePlanes | None:
        """The source's 4:2:0 picture in GPU memory, not copied; ``None`` if it is not there."""
        return self._surface.source_planes

    @property
    def device_picture(self) -> DeviceArray | None:
        """The source's picture in GPU memory, (height, width, 3) uint8 RGB; ``None`` if it is not there.

        RGB is not copied, of 4:2:0 it is made when it is first asked for.
        """
        return self._surface.source_tensor

    @property
    def tensor(self) -> Any:
        """`device_picture` as a torch tensor; ``None`` in host memory, or where torch is not in use."""
        if self._tensor is None:  # kept for the many crops of a frame
            torch = sys.modules.get("torch")
            picture = None if torch is None else self.device_picture
            self._tensor = None if torch is None or picture is None else torch.from_dlpack(picture)
        return self._tensor

    def resized(self, width: int, height: int, out: Image | None = None, region: Region | None = None) -> Image:
        """See `elements.inference.frame.Frame.resized`."""
        p = self.placement
        x1, y1, x2, y2 = region or (0, 0, self.width, self.height)
        sx, sy = p.scale
        on_surface = (p.left + x1 * sx, p.top + y1 * sy, p.left + x2 * sx, p.top + y2 * sy)
        return self._surface.resample(width, height, on_surface, out)

    def resized_parts(self, regions: NDArray[np.float64], out: Image) -> None:
        """See `elements.inference.frame.Frame`."""
        p = self.placement
        self._surface.resample_parts(regions * np.array(p.scale * 2) + np.array([p.left, p.top] * 2), out)


def frames_of(buffer: Gst.Buffer, names: Sequence[str] = ()) -> list[BatchFrame]:
    """The frames of ``buffer``, whose metadata may be written.

    Args:
        buffer: carries a batch.
        names: of the sources, by id.

    Raises:
        ElementError: if the buffer carries no batch.
    """
    batch = writable_batch(buffer)
    return [
        BatchFrame(meta, batch.surfaces[meta.batch_id], names[meta.source_id] if meta.source_id < len(names) else "")
        for meta in batch.frames
    ]
