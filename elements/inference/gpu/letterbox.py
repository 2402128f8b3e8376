"""Batch letterbox on a torch device: uint8 pictures of any size to the rows of one normalised input tensor.

The geometry is that of `elements.inference.letterbox`; bilinear with pixel centres at one half and edges repeated,
without antialiasing. 4:2:0 pictures are resampled and converted as on the CPU, bit for bit
(`elements.inference.gpu.resampling`); RGB is resampled in float.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as functional

from elements.inference.frame import DevicePlanes
from elements.inference.gpu.resampling import tensors_of, to_rgb, uploaded, uploaded_matrix
from elements.inference.preprocess import Preprocess
from elements.metadata.detections import IntArray
from elements.metadata.placement import Placement, Placements

# A row of the table for each row of the input; the last column says what the others are.
# PACKED, RGB: address, bytes per row, width, height; left, top, width, height in the input.
# PLANAR, 4:2:0: the first seven of `DevicePlanes`; left, top, width, height; addresses of four taps and the matrix.
TABLE_COLUMNS = 18  # even, so that every row begins at a multiple of 16 bytes, whatever Triton makes of that
NOTHING, PACKED, PLANAR = 0, 1, 2


def has_triton() -> bool:
    """Whether the fused kernels can run here."""
    return importlib.util.find_spec("triton") is not None


def check_picture(picture: Any, device: torch.device) -> None:
    """Raise `ValueError`, with what to do, unless ``picture`` is (h, w, 3) uint8 that can be read here.

    A torch tensor, or an array with ``__cuda_array_interface__`` whose pixels are complete.
    """
    where, shape, strides, kind = _describe(picture)
    if len(shape) == 3 and shape[2] == 4:
        raise ValueError(
            "its picture is RGBA, a model needs RGB: put nvvideoconvert and the caps "
            "video/x-raw(memory:NVMM),format=RGB before pyinfer"
        )
    if len(shape) != 3 or shape[2] != 3 or kind not in (torch.uint8, np.uint8) or strides[1:] != (3, 1):
        raise ValueError(
            f"its picture is {shape} {kind} with strides {strides}: (height, width, 3) uint8 RGB "
            "with the three colours side by side is needed"
        )
    check_device(where, device)


def check_device(where: torch.device, device: torch.device) -> None:
    """Raise `ValueError`, with what to do, unless a picture is on the model's device."""
    if where != device:
        raise ValueError(f"its picture is on {where}, the model on {device}: set both to one GPU")


def _describe(picture: Any) -> tuple[torch.device, tuple[int, ...], tuple[int, ...], Any]:
    """Device, shape, strides (of bytes, as elements are bytes) and type."""
    if isinstance(picture, torch.Tensor):
        return picture.device, tuple(picture.shape), picture.stride(), picture.dtype
    return torch.device("cuda", picture.device), picture.shape, picture.strides, picture.dtype


class Pixels(NamedTuple):
    """Where a picture's pixels lie: packed uint8 RGB in rows of ``pitch`` bytes, ``width`` x ``height``."""

    address: int
    pitch: int
    width: int
    height: int

    @classmethod
    def of(cls, picture: Any) -> Pixels:
        """Of a picture that `check_picture` has passed."""
        height, width, _ = picture.shape
        if isinstance(picture, torch.Tensor):
            return cls(picture.data_ptr(), picture.stride(0), width, height)
        return cls(picture.pointer, picture.strides[0], width, height)

    def part(self, x1: int, y1: int, x2: int, y2: int) -> Pixels:
        """A rectangle of it; that takes a fiftieth of the time of slicing a tensor."""
        return Pixels(self.address + y1 * self.pitch + 3 * x1, self.pitch, x2 - x1, y2 - y1)

    def parts(self, regions: IntArray) -> IntArray:
        """`part` of each of (N, 4) regions as a row: (N, 4) int64."""
        rows = np.empty_like(regions)
        rows[:, 0] = self.address + regions[:, 1] * self.pitch + 3 * regions[:, 0]
        rows[:, 1] = self.pitch
        rows[:, 2:] = regions[:, 2:] - regions[:, :2]
        return rows


def fill_table(
    pixels: Sequence[Pixels | DevicePlanes] | IntArray, placements: Placements, table: IntArray, device: torch.device
) -> int:
    """Write what the fused kernels read into ``table``, (at least N, `TABLE_COLUMNS`) int64.

    Args:
        pixels: where each picture lies; RGB pictures also as (N, 4) rows.
        placements: where each lies in the input.
        table: is written; rows beyond N get `NOTHING`.
        device: what depends on sizes and colours only is put there once.

    Returns:
        The number of RGB pictures.
    """
    count, areas = len(placements), placements.areas
    rows = table[:count]
    table[count:, -1] = NOTHING
    if isinstance(pixels, np.ndarray):
        rows[:, :4], rows[:, 4:8], rows[:, -1] = pixels, areas, PACKED
        return count
    planar = [slot for slot, one in enumerate(pixels) if isinstance(one, DevicePlanes)]
    if planar:
        planes = [cast(DevicePlanes, pixels[slot]) for slot in planar]
        where: Any = slice(None) if len(planar) == count else planar  # most often; that is twice as fast
        rows[where, :7] = [one[:7] for one in planes]
        rows[where, 7:] = _constants(tuple(one[7:10] for one in planes), areas[where].tobytes(), device)[0]
    packed = sorted(set(range(count)).difference(planar))
    if packed:
        rows[packed, :4], rows[packed, 4:8], rows[packed, -1] = [pixels[slot] for slot in packed], areas[packed], PACKED
    return len(packed)


@lru_cache(256)  # the batches of a stream are alike
def _constants(
    looks: tuple[tuple[int, int, tuple[int, ...]], ...], areas: bytes, device: torch.device
) -> tuple[IntArray, list[torch.Tensor]]:
    """What rows of 4:2:0 pictures hold besides addresses and pitches, (N, 11), and the tensors that must live as long.

    Args:
        looks: width, height and matrix of each picture.
        areas: those of their `Placements`.
        device: of the tensors.
    """
    rows = np.empty((len(looks), 11), np.int64)
    rows[:, :4], rows[:, -1] = np.frombuffer(areas).reshape(-1, 4), PLANAR
    kept: list[torch.Tensor] = []
    for row, (width, height, matrix) in zip(rows, looks, strict=True):
        target = (int(row[2]), int(row[3]))
        tensors = (*uploaded((width, height), target, device), uploaded_matrix(matrix, device))
        row[4:9] = [tensor.data_ptr() for tensor in tensors]
        kept += tensors
    return rows, kept


def letterbox(
    pictures: Sequence[torch.Tensor | DevicePlanes],
    placements: Sequence[Placement],
    out: torch.Tensor,
    options: Preprocess,
) -> None:
    """Write each picture into its row of ``out``, in plain torch: for the CPU, and where Triton is missing.

    Args:
        pictures: (h, w, 3) uint8 RGB, or 4:2:0 pictures, on the device of ``out``.
        placements: where each lies in the input.
        out: (B, 3, H, W) view of any strides, float or uint8; rows beyond the pictures are left as they are.
        options: colour order, value range and grey of the padding.
    """
    gains, offsets, padding = _affine(options, out.device)
    for picture, place, slot in zip(pictures, placements, out, strict=False):
        left, top, width, height = (int(v) for v in (place.left, place.top, place.width, place.height))
        if isinstance(picture, DevicePlanes):
            picture = to_rgb(tensors_of(picture), picture.matrix, (width, height))
        planes = picture.permute(2, 0, 1)[None].float()
        if (width, height) != (picture.shape[1], picture.shape[0]):
            planes = functional.interpolate(planes, (height, width), mode="bilinear", align_corners=False)
        if options.color == "bgr":
            planes = planes.flip(1)
        if slot.dtype == torch.uint8:
            planes = planes.round()
        slot.copy_(padding.expand_as(slot))
        cut = planes[0, :, max(0, -top) : slot.shape[1] - top, max(0, -left) : slot.shape[2] - left]
        top, left = max(0, top), max(0, left)
        slot[:, top : top + cut.shape[1], left : left + cut.shape[2]] = torch.addcmul(offsets, cut, gains)


@lru_cache(maxsize=8)
def _affine(options: Preprocess, device: torch.device) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gain, offset and value of the padding for each channel: (3, 1, 1) on the device."""
    gains, offsets = (torch.tensor(values, device=device)[:, None, None] for values in options.affine())
    return gains, offsets, options.pad * gains + offsets
