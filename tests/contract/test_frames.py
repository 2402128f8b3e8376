"""Frames of DeepStream's batches: where the source's picture lies on the surface."""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

from elements.frames import ExtractedFrame
from elements.inference.crops import CropFrame
from elements.portable.frames import BatchFrame
from elements.portable.meta import FrameMeta
from elements.portable.surface import Surface

SURFACE = np.arange(72 * 128 * 3, dtype=np.uint32).astype(np.uint8).reshape(72, 128, 3)


class Tensor:
    """pyservicemaker's Tensor over host memory that claims to be on the GPU."""

    device_type = "GPU"
    shape = SURFACE.shape

    def __dlpack__(self, **options: object) -> object:
        return SURFACE.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def frame(padded: bool) -> ExtractedFrame:
    meta = types.SimpleNamespace(
        batch_id=0,
        source_width=640,
        source_height=640,
        source_id=0,
        frame_number=0,
        buffer_pts=0,
        ntp_timestamp=0,
        pad_index=0,
    )
    return ExtractedFrame(types.SimpleNamespace(extract=lambda batch_id: Tensor()), meta, padded)


@pytest.mark.parametrize(
    ("padded", "expected"), [(True, SURFACE[:, 28:100]), (False, SURFACE)], ids=["padded", "stretched"]
)
def test_a_picture_on_the_gpu_is_the_active_part_of_the_surface(
    monkeypatch: pytest.MonkeyPatch, padded: bool, expected: np.ndarray
) -> None:
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(from_dlpack=np.from_dlpack))
    np.testing.assert_array_equal(frame(padded).tensor, expected)


def test_without_torch_there_is_no_picture_on_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert frame(True).tensor is None


def test_a_crop_of_a_frame_in_a_padded_batch() -> None:
    """64x48 in the middle of 128x128, twice as large; the crop is in pixels of the source."""
    picture = np.zeros((48, 64, 3), np.uint8)
    picture[..., 0], picture[..., 1] = np.arange(64), np.arange(48)[:, None]
    surface = Surface.of_array(picture).mapped(128, 128, "RGB", target=(0, 16, 128, 112))
    portable = BatchFrame(FrameMeta(0, 0, 0, 0, source_width=64, source_height=48), surface, "door")
    assert (portable.width, portable.height, portable.source) == (64, 48, "door")
    np.testing.assert_array_equal(CropFrame(portable, (10, 20, 30, 28)).resized(20, 8), picture[20:28, 10:30])
