"""NVMM buffers as NVIDIA's elements hand them out, without a GPU: their structures, byte by byte, in host memory."""

from __future__ import annotations

import os
import struct

import gi
import numpy as np

gi.require_version("Gst", "1.0")
gi.require_version("GstAllocators", "1.0")
from gi.repository import Gst, GstAllocators  # noqa: E402

Gst.init(None)

RGB, RGBA, I420, NV12, NV12_709, P010_709 = 27, 19, 2, 6, 33, 38
CUDA_DEVICE, SYSTEM, CUDA_ARRAY = 2, 6, 7
# bytes per column of the picture of each plane, rounded up for the chroma of an odd column
PLANE_ROWS = {RGB: [3], RGBA: [4], I420: [1, 0.5, 0.5], NV12: [1, 1], NV12_709: [1, 1], P010_709: [2, 2]}


class NvmmFrame:
    """One NVMM frame. ``planes`` are (rows, pitch) uint8 arrays over one block, laid out as NVIDIA lays it out.

    It must outlive the buffers that are made of it.
    """

    def __init__(
        self,
        width: int,
        height: int,
        color_format: int = RGB,
        memory_type: int = SYSTEM,
        layout: int = 0,
        filled: int = 1,
    ) -> None:
        rows_of = PLANE_ROWS[color_format]
        widths = [int((width + width % 2 if i else width) * bytes_) for i, bytes_ in enumerate(rows_of)]
        pitches = [-(-w // 512) * 512 for w in widths]
        even = height + height % 2
        heights = [even // 2 if i else even for i in range(len(widths))]
        sizes = [pitch * rows for pitch, rows in zip(pitches, heights, strict=True)]
        offsets = [sum(sizes[:i]) for i in range(len(sizes))]
        self.block = np.full(sum(sizes), 0xEE, np.uint8)  # what lies in the padding must never be seen
        self.address = self.block.ctypes.data
        self.pitch = pitches[0]
        self.planes = [
            self.block[offset : offset + size].reshape(rows, pitch)
            for offset, size, rows, pitch in zip(offsets, sizes, heights, pitches, strict=True)
        ]
        self._params = bytearray(416)
        struct.pack_into("<IIIii", self._params, 0, width, height, pitches[0], color_format, layout)
        struct.pack_into("<I", self._params, 32, sum(sizes))
        struct.pack_into("<Q", self._params, 40, self.address)
        struct.pack_into("<I", self._params, 48, len(sizes))
        for start, values in ((36, pitches), (52, offsets), (68, sizes)):
            struct.pack_into(f"<{len(values)}I", self._params, 48 + start, *values)
        self._list = np.frombuffer(self._params, np.uint8)
        self.surface = bytearray(72)
        struct.pack_into("<III", self.surface, 0, 0, 1, filled)
        struct.pack_into("<i", self.surface, 16, memory_type)
        struct.pack_into("<Q", self.surface, 24, self._list.ctypes.data)

    def paint(self, rgb: np.ndarray) -> NvmmFrame:
        """Fill an RGB frame."""
        height, width = rgb.shape[:2]
        self.planes[0][:height, : width * 3] = rgb.reshape(height, width * 3)
        return self

    def buffer(self) -> Gst.Buffer:
        """A buffer whose 72 bytes are the NvBufSurface, in memory that is not GStreamer's system memory."""
        descriptor = os.memfd_create("nvmm")
        os.write(descriptor, self.surface)
        kept = GstAllocators.FdMemoryFlags.KEEP_MAPPED
        memory = GstAllocators.FdAllocator.alloc(GstAllocators.FdAllocator.new(), descriptor, 72, kept)
        buffer = Gst.Buffer.new()
        buffer.append_memory(memory)
        return buffer
