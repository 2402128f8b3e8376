"""4:2:0 pictures in GPU memory as RGB, by torch: for who wants RGB. Models read the planes themselves."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from elements.base import ElementError
from elements.inference.frame import DevicePlanes
from elements.portable.device_array import DeviceArray


def rgb_of(planes: DevicePlanes) -> DeviceArray:
    """The picture as (height, width, 3) uint8 RGB in memory of its own, complete: bit for bit as `Picture.rgb`.

    Raises:
        ElementError: if torch is not installed.
    """
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise ElementError(
            f"a 4:2:0 picture in GPU memory must be converted to RGB there, which needs torch ({error}); install it, "
            "or read the pixels on the host"
        ) from None
    from elements.inference.gpu.rgb import to_rgb

    stream = _stream(torch, planes.device)
    with torch.inference_mode(), torch.cuda.stream(stream):
        (rgb,) = to_rgb([planes])
    stream.synchronize()  # whoever reads it may be on another stream
    return DeviceArray(rgb.data_ptr(), tuple(rgb.shape), tuple(rgb.stride()), planes.device, rgb)


@functools.cache
def _stream(torch: Any, device: int) -> Any:
    """One of its own: waiting for it waits for no network."""
    return torch.cuda.Stream(device)
