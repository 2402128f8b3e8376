"""Scaling of pictures in GPU memory, by torch. Only for who wants them at the stream mux's size; models don't."""

from __future__ import annotations

import importlib

from elements.base import ElementError
from elements.portable.device_array import DeviceArray
from elements.portable.picture import Rect


def scaled(source: DeviceArray, window: Rect, size: tuple[int, int], target: Rect) -> DeviceArray:
    """``window`` of an (H, W, 3) picture scaled to fill ``target`` of a new black one of ``size`` (width, height).

    Bilinear, with pixel-centre geometry; both rectangles are rounded to whole pixels.

    Raises:
        ElementError: if torch is not installed or sees no GPU.
    """
    try:
        torch = importlib.import_module("torch")
        functional = importlib.import_module("torch.nn.functional")
    except ImportError as error:
        raise ElementError(
            f"a picture of {source.shape[1]}x{source.shape[0]} in GPU memory must be scaled, which needs torch "
            f"({error}); install it, or give the stream mux the sources' size"
        ) from None
    (x1, y1, x2, y2), (left, top, right, bottom) = _whole(window), _whole(target)
    picture = torch.as_tensor(source, device=f"cuda:{source.device}")
    part = picture[y1:y2, x1:x2].permute(2, 0, 1).unsqueeze(0).float()
    part = functional.interpolate(part, (bottom - top, right - left), mode="bilinear", align_corners=False)
    canvas = torch.zeros((size[1], size[0], 3), dtype=torch.uint8, device=picture.device)
    canvas[top:bottom, left:right] = part[0].permute(1, 2, 0).round().clamp(0, 255).to(torch.uint8)
    torch.cuda.current_stream(picture.device).synchronize()  # whoever reads it may be on another stream
    return DeviceArray(canvas.data_ptr(), tuple(canvas.shape), tuple(canvas.stride()), source.device, canvas)


def _whole(rect: Rect) -> tuple[int, int, int, int]:
    x1, y1, x2, y2 = (round(edge) for edge in rect)
    return x1, y1, x2, y2
