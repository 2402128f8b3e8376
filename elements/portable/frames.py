"""The frames of a batch as models see them: `elements.inference.frame.Frame` over a surface and its metadata."""

from __future__ import annotations

import sys
from typing import Any

from elements.base import Gst
from elements.inference.frame import Image
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
        placement: where the source's picture lies on the surface, i.e. in the frame that the metadata speaks of.
        batch_id: number of the frame in its batch, as in the metadata.
    """

    __slots__ = ("_meta", "_surface", "batch_id", "placement")

    def __init__(self, meta: FrameMeta, surface: Surface) -> None:
        self._meta = meta
        self._surface = surface
        self.batch_id = meta.batch_id
        self.placement: Placement = surface.placement

    @property
    def width(self) -> int:
        return self.placement.source_width

    @property
    def height(self) -> int:
        return self.placement.source_height

    @property
    def source_id(self) -> int:
        return self._meta.source_id

    @property
    def frame_number(self) -> int:
        return self._meta.frame_number

    @property
    def pts(self) -> int:
        return self._meta.buffer_pts

    @property
    def device_picture(self) -> DeviceArray | None:
        """The source's picture in GPU memory, (height, width, 3) uint8 RGB, not copied; ``None`` if it is not there."""
        return self._surface.source_tensor

    @property
    def tensor(self) -> Any:
        """`device_picture` as a torch tensor; ``None`` in host memory, or where torch is not in use."""
        torch, picture = sys.modules.get("torch"), self.device_picture
        return None if torch is None or picture is None else torch.from_dlpack(picture)

    def resized(self, width: int, height: int, out: Image | None = None) -> Image:
        """See `elements.inference.frame.Frame.resized`."""
        p = self.placement
        return self._surface.resample(width, height, (p.left, p.top, p.left + p.width, p.top + p.height), out)


def frames_of(buffer: Gst.Buffer) -> list[BatchFrame]:
    """The frames of ``buffer``, whose metadata may be written.

    Raises:
        ElementError: if the buffer carries no batch.
    """
    batch = writable_batch(buffer)
    return [BatchFrame(meta, batch.surfaces[meta.batch_id]) for meta in batch.frames]
