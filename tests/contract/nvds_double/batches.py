"""Gst.Buffers as nvstreammux and nvvideoconvert leave them: an NvBufSurface and an NvDsBatchMeta."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from elements.base import Gst
from tests.contract.nvds_double.buffer import PARAMS_SIZE, RGB, SURFACE_SIZE, SYSTEM
from tests.contract.nvds_double.native import address_of, i32, lib, u32, u64

BATCH_GST_META = 4097  # NVDS_BATCH_GST_META


@dataclass
class FrameSpec:
    """A frame: ``picture`` is the whole surface, (H, W, 3) RGB with any pitch; ``size`` is the source's (W, H)."""

    picture: np.ndarray
    size: tuple[int, int]
    source_id: int = 0
    number: int = 0


class Surfaces:
    """Memory of pictures, for buffers that must not outlive it."""

    def __init__(self, frames: list[FrameSpec], color: int = RGB) -> None:
        self.frames = frames
        params = b"".join(_params(frame.picture, color) for frame in frames)
        self._params = np.frombuffer(params, np.uint8).copy()
        self._surface = struct.pack(
            "<III?3xi4xQ?7x32x", 0, len(frames), len(frames), False, SYSTEM, self._params.ctypes.data, False
        )
        assert len(self._surface) == SURFACE_SIZE

    def buffer(self, max_frames: int | None = None) -> Gst.Buffer:
        """A new buffer with a batch of its own."""
        made = Gst.Buffer.new_wrapped(self._surface)
        batch = lib.nvds_create_batch_meta(max_frames or len(self.frames))
        u32(batch + 40).value = max_frames or len(self.frames)  # which the library leaves 0
        for index, frame in enumerate(self.frames):
            _add_frame(batch, index, frame)
        copy, release = (address_of(f) for f in (lib.nvds_batch_meta_copy_func, lib.nvds_batch_meta_release_func))
        meta = lib.gst_buffer_add_nvds_meta(hash(made), batch, None, copy, release)
        u32(meta + 32).value = BATCH_GST_META
        return made


def _params(picture: np.ndarray, color: int) -> bytes:
    height, width = picture.shape[:2]
    pitch = picture.strides[0]
    head = struct.pack("<IIIii4xQI4xQ", width, height, pitch, color, 0, 0, pitch * height, picture.ctypes.data)
    return head.ljust(PARAMS_SIZE, b"\0")


def _add_frame(batch: int, index: int, frame: FrameSpec) -> None:
    at = lib.nvds_acquire_frame_meta_from_pool(batch)
    height, width = frame.picture.shape[:2]
    for offset, value in {
        40: frame.source_id,
        44: index,
        72: frame.source_id,
        80: frame.size[0],
        84: frame.size[1],
    }.items():
        u32(at + offset).value = value
    i32(at + 48).value = frame.number
    u64(at + 56).value = frame.number * 40_000_000
    u32(at + 160).value, u32(at + 164).value = width, height
    lib.nvds_add_frame_meta_to_batch(batch, at)
