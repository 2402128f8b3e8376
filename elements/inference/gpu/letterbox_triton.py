"""The batch letterbox as fused kernels: every picture is read once where it lies, every input value written once."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from elements.inference.gpu.letterbox import PACKED, PLANAR, TABLE_COLUMNS
from elements.inference.preprocess import Preprocess

# Tile's width and height, warps: of all tried on an H200 the fastest
PACKED_TILE, PLANAR_TILE = (256, 1, 4), (128, 1, 2)


def letterbox_fused(table: torch.Tensor, packed: int, count: int, out: torch.Tensor, options: Preprocess) -> None:
    """Write ``count`` pictures into the rows of ``out``; see `elements.inference.gpu.letterbox.letterbox`.

    Args:
        table: (at least ``count``, `TABLE_COLUMNS`) int64 on the device, as `fill_table` makes it. The pictures' sizes
            may differ.
        packed: how many of them are RGB; the others are 4:2:0. Each kernel passes over the other's rows, and with 0 or
            ``count`` only one runs, so that is also how to do the pictures of one kind among both.
        count: number of rows.
        out: (B, 3, H, W) view of any strides, float or uint8; rows for which there is no picture are left as they are.
        options: colour order, value range and grey of the padding.
    """
    height, width = out.shape[2:]
    gains, offsets = options.affine()
    for kernel, kind, (block_x, block_y, warps), pictures in (
        (_packed, PACKED, PACKED_TILE, packed),
        (_planar, PLANAR, PLANAR_TILE, count - packed),
    ):
        if not pictures:
            continue
        kernel[(triton.cdiv(width, block_x), triton.cdiv(height, block_y), count)](
            table,
            out,
            *out.stride(),
            width,
            height,
            float(options.pad),
            *gains,
            *offsets,
            columns=TABLE_COLUMNS,
            kind=kind,
            bgr=options.color == "bgr",
            rounded=out.dtype == torch.uint8,
            block_x=block_x,
            block_y=block_y,
            num_warps=warps,
        )


@triton.jit  # type: ignore[untyped-decorator]
def _pick(channel: tl.constexpr, first, second, third) -> Any:  # type: ignore[no-untyped-def]
    return first if channel == 0 else (second if channel == 1 else third)


@triton.jit  # type: ignore[untyped-decorator]
def _packed(  # type: ignore[no-untyped-def]
    table,
    out,
    stride_b,
    stride_c,
    stride_y,
    stride_x,
    net_width,
    net_height,
    pad,
    gain_0,
    gain_1,
    gain_2,
    offset_0,
    offset_1,
    offset_2,
    columns: tl.constexpr,
    kind: tl.constexpr,
    bgr: tl.constexpr,
    rounded: tl.constexpr,
    block_x: tl.constexpr,
    block_y: tl.constexpr,
) -> Any:
    """One tile of the input, block_y x block_x pixels, of one RGB picture."""
    slot = tl.program_id(2).to(tl.int64)
    row = table + slot * columns
    if tl.load(row + columns - 1) != kind:
        return
    source = tl.load(row).to(tl.pointer_type(tl.uint8))
    pitch = tl.load(row + 1)
    src_w = tl.load(row + 2).to(tl.int32)
    src_h = tl.load(row + 3).to(tl.int32)
    left = tl.load(row + 4).to(tl.int32)
    top = tl.load(row + 5).to(tl.int32)
    width = tl.load(row + 6).to(tl.int32)
    height = tl.load(row + 7).to(tl.int32)

    x = tl.program_id(0) * block_x + tl.arange(0, block_x)
    y = tl.program_id(1) * block_y + tl.arange(0, block_y)
    # Centre of the input pixel in source pixels, counted from the first source pixel's centre; edges repeat.
    sx = ((x - left).to(tl.float32) + 0.5) * (src_w.to(tl.float32) / width.to(tl.float32)) - 0.5
    sy = ((y - top).to(tl.float32) + 0.5) * (src_h.to(tl.float32) / height.to(tl.float32)) - 0.5
    sx = tl.minimum(tl.maximum(sx, 0.0), (src_w - 1).to(tl.float32))
    sy = tl.minimum(tl.maximum(sy, 0.0), (src_h - 1).to(tl.float32))
    x0 = sx.to(tl.int32)
    y0 = sy.to(tl.int32)
    weight_x = (sx - x0.to(tl.float32))[None, :]
    weight_y = (sy - y0.to(tl.float32))[:, None]
    x1 = tl.minimum(x0 + 1, src_w - 1)
    y1 = tl.minimum(y0 + 1, src_h - 1)

    inside_x = (x >= left) & (x < left + width)
    inside_y = (y >= top) & (y < top + height)
    inside = inside_y[:, None] & inside_x[None, :]
    upper = source + (y0.to(tl.int64) * pitch)[:, None]
    lower = source + (y1.to(tl.int64) * pitch)[:, None]
    to_left = (x0 * 3)[None, :]
    to_right = (x1 * 3)[None, :]

    target = out + slot * stride_b + (y.to(tl.int64) * stride_y)[:, None] + (x.to(tl.int64) * stride_x)[None, :]
    valid = (y < net_height)[:, None] & (x < net_width)[None, :]
    for channel in tl.static_range(3):
        a = tl.load(upper + to_left + channel, mask=inside, other=0).to(tl.float32)
        b = tl.load(upper + to_right + channel, mask=inside, other=0).to(tl.float32)
        c = tl.load(lower + to_left + channel, mask=inside, other=0).to(tl.float32)
        d = tl.load(lower + to_right + channel, mask=inside, other=0).to(tl.float32)
        over = a + (b - a) * weight_x
        under = c + (d - c) * weight_x
        plane = 2 - channel if bgr else channel
        value = tl.where(inside, over + (under - over) * weight_y, pad)
        value = value * _pick(plane, gain_0, gain_1, gain_2) + _pick(plane, offset_0, offset_1, offset_2)
        if rounded:
            value = tl.floor(value + 0.5)
        tl.store(target + plane * stride_c, value.to(out.dtype.element_ty), mask=valid)


@triton.jit  # type: ignore[untyped-decorator]
def _taps(address, at, inside) -> Any:  # type: ignore[no-untyped-def]
    """The two source samples of each target sample and their weights; see `Taps.packed`."""
    packed = tl.load(address.to(tl.pointer_type(tl.int64)) + at, mask=inside, other=0)
    first, rest = (packed >> 32).to(tl.int32), packed.to(tl.int32)
    return first, first + ((rest >> 24) & 1), (rest >> 12) & 4095, rest & 4095


@triton.jit  # type: ignore[untyped-decorator]
def _corners(source, pitch, step, across, down, inside) -> Any:  # type: ignore[no-untyped-def]
    """The four source samples around each target sample of a tile, int32. A plane has less than 2 GiB."""
    upper = (down[0] * pitch)[:, None]
    lower = (down[1] * pitch)[:, None]
    to_left = (across[0] * step)[None, :]
    to_right = (across[1] * step)[None, :]
    a = tl.load(source + (upper + to_left), mask=inside, other=0).to(tl.int32)
    b = tl.load(source + (upper + to_right), mask=inside, other=0).to(tl.int32)
    c = tl.load(source + (lower + to_left), mask=inside, other=0).to(tl.int32)
    d = tl.load(source + (lower + to_right), mask=inside, other=0).to(tl.int32)
    return a, b, c, d


@triton.jit  # type: ignore[untyped-decorator]
def _blend(a, b, c, d, across, down) -> Any:  # type: ignore[no-untyped-def]
    """See `elements.inference.gpu.resampling.resample`."""
    left, right = across[2][None, :], across[3][None, :]
    over = ((a * left + b * right) >> 4) * down[2][:, None]
    under = ((c * left + d * right) >> 4) * down[3][:, None]
    return tl.minimum(((over >> 16) + (under >> 16) + 2) >> 2, 255)


@triton.jit  # type: ignore[untyped-decorator]
def _sampled(row, x, y, inside_x, inside_y) -> Any:  # type: ignore[no-untyped-def]
    """Y, Cb and Cr of a tile of the picture that a row of the table describes, int32; x and y count from its corner."""
    luma = tl.load(row).to(tl.pointer_type(tl.uint8))
    blue_address, red_address = tl.load(row + 1), tl.load(row + 2)
    luma_pitch = tl.load(row + 3).to(tl.int32)
    pitch = tl.load(row + 4).to(tl.int32)
    luma_step = tl.load(row + 5).to(tl.int32)
    step = tl.load(row + 6).to(tl.int32)
    inside = inside_y[:, None] & inside_x[None, :]
    across = _taps(tl.load(row + 11), x, inside_x)
    down = _taps(tl.load(row + 12), y, inside_y)
    a, b, c, d = _corners(luma, luma_pitch, luma_step, across, down, inside)
    light = _blend(a, b, c, d, across, down)
    across = _taps(tl.load(row + 13), x, inside_x)
    down = _taps(tl.load(row + 14), y, inside_y)
    if (step == 2) & (red_address == blue_address + 1) & (blue_address % 2 == 0) & (pitch % 2 == 0):
        pairs = blue_address.to(tl.pointer_type(tl.uint16))  # Cb in the lower byte
        a, b, c, d = _corners(pairs, pitch // 2, 1, across, down, inside)
        blue = _blend(a & 255, b & 255, c & 255, d & 255, across, down)
        red = _blend(a >> 8, b >> 8, c >> 8, d >> 8, across, down)
    else:
        a, b, c, d = _corners(blue_address.to(tl.pointer_type(tl.uint8)), pitch, step, across, down, inside)
        blue = _blend(a, b, c, d, across, down)
        a, b, c, d = _corners(red_address.to(tl.pointer_type(tl.uint8)), pitch, step, across, down, inside)
        red = _blend(a, b, c, d, across, down)
    return light, blue, red


@triton.jit  # type: ignore[untyped-decorator]
def _planar(  # type: ignore[no-untyped-def]
    table,
    out,
    stride_b,
    stride_c,
    stride_y,
    stride_x,
    net_width,
    net_height,
    pad,
    gain_0,
    gain_1,
    gain_2,
    offset_0,
    offset_1,
    offset_2,
    columns: tl.constexpr,
    kind: tl.constexpr,
    bgr: tl.constexpr,
    rounded: tl.constexpr,
    block_x: tl.constexpr,
    block_y: tl.constexpr,
) -> Any:
    """One tile of the input, block_y x block_x pixels, of one 4:2:0 picture."""
    slot = tl.program_id(2).to(tl.int64)
    row = table + slot * columns
    if tl.load(row + columns - 1) != kind:
        return
    left = tl.load(row + 7).to(tl.int32)
    top = tl.load(row + 8).to(tl.int32)
    width = tl.load(row + 9).to(tl.int32)
    height = tl.load(row + 10).to(tl.int32)
    matrix = tl.load(row + 15).to(tl.pointer_type(tl.int32))

    x = tl.program_id(0) * block_x + tl.arange(0, block_x)
    y = tl.program_id(1) * block_y + tl.arange(0, block_y)
    inside_x = (x >= left) & (x < left + width)
    inside_y = (y >= top) & (y < top + height)
    inside = inside_y[:, None] & inside_x[None, :]

    light = tl.zeros((block_y, block_x), tl.int32)
    blue = light
    red = light
    if tl.max(inside_y.to(tl.int32), 0) > 0:  # much of an input is padding above and below
        light, blue, red = _sampled(row, x - left, y - top, inside_x, inside_y)

    target = out + slot * stride_b + (y.to(tl.int64) * stride_y)[:, None] + (x.to(tl.int64) * stride_x)[None, :]
    valid = (y < net_height)[:, None] & (x < net_width)[None, :]
    for channel in tl.static_range(3):
        weights = matrix + 4 * channel
        total = tl.load(weights) * light + tl.load(weights + 1) * blue + tl.load(weights + 2) * red
        total = (total + tl.load(weights + 3) + 512) >> 10
        color = tl.minimum(tl.maximum(total, 0), 255).to(tl.float32)
        plane = 2 - channel if bgr else channel
        value = tl.where(inside, color, pad)
        value = value * _pick(plane, gain_0, gain_1, gain_2) + _pick(plane, offset_0, offset_1, offset_2)
        if rounded:
            value = tl.floor(value + 0.5)
        tl.store(target + plane * stride_c, value.to(out.dtype.element_ty), mask=valid)
