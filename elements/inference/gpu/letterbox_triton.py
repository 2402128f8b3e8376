"""The batch letterbox as one fused kernel: every picture is read once where it lies, every input value written once."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from elements.inference.gpu.letterbox import TABLE_COLUMNS
from elements.inference.preprocess import Preprocess

BLOCK_X, BLOCK_Y = 256, 1  # of all tried on an H200 the fastest into channels-last memory


def letterbox_fused(table: torch.Tensor, count: int, out: torch.Tensor, options: Preprocess) -> None:
    """Write ``count`` pictures into the rows of ``out``; see `elements.inference.gpu.letterbox.letterbox`.

    Args:
        table: (at least ``count``, 8) int64 on the device, as `fill_table` makes it. The pictures' sizes may differ.
        count: number of pictures.
        out: (B, 3, H, W) view of any strides, float or uint8.
        options: colour order, value range and grey of the padding.
    """
    height, width = out.shape[2:]
    gains, offsets = options.affine()
    grid = (triton.cdiv(width, BLOCK_X), triton.cdiv(height, BLOCK_Y), count)
    _kernel[grid](
        table,
        out,
        *out.stride(),
        width,
        height,
        float(options.pad),
        *gains,
        *offsets,
        columns=TABLE_COLUMNS,
        bgr=options.color == "bgr",
        rounded=out.dtype == torch.uint8,
        block_x=BLOCK_X,
        block_y=BLOCK_Y,
    )


@triton.jit  # type: ignore[untyped-decorator]
def _kernel(  # type: ignore[no-untyped-def]
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
    bgr: tl.constexpr,
    rounded: tl.constexpr,
    block_x: tl.constexpr,
    block_y: tl.constexpr,
) -> Any:
    """One tile of the input, block_y x block_x pixels, of one picture."""
    frame = tl.program_id(2).to(tl.int64)
    row = table + frame * columns
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

    target = out + frame * stride_b + (y.to(tl.int64) * stride_y)[:, None] + (x.to(tl.int64) * stride_x)[None, :]
    valid = (y < net_height)[:, None] & (x < net_width)[None, :]
    for channel in tl.static_range(3):
        a = tl.load(upper + to_left + channel, mask=inside, other=0).to(tl.float32)
        b = tl.load(upper + to_right + channel, mask=inside, other=0).to(tl.float32)
        c = tl.load(lower + to_left + channel, mask=inside, other=0).to(tl.float32)
        d = tl.load(lower + to_right + channel, mask=inside, other=0).to(tl.float32)
        over = a + (b - a) * weight_x
        under = c + (d - c) * weight_x
        plane = 2 - channel if bgr else channel
        gain = gain_0 if plane == 0 else (gain_1 if plane == 1 else gain_2)
        offset = offset_0 if plane == 0 else (offset_1 if plane == 1 else offset_2)
        value = tl.where(inside, over + (under - over) * weight_y, pad) * gain + offset
        if rounded:
            value = tl.floor(value + 0.5)
        tl.store(target + plane * stride_c, value.to(out.dtype.element_ty), mask=valid)
