"""What a model of one's own sees of a frame."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np

from elements.inference.frame import Frame, Image


class OwnFrame:
    """One upright frame of one source, and what the model keeps for that source.

    Pixels are made when they are asked for, and kept until the call returns.

    Attributes:
        state: a dict for the model's own use, one per source, the same for all its frames. Dropped when the source ends
            or starts anew, and when its stream time steps back.
    """

    __slots__ = ("_array", "_frame", "_tensor", "state")

    def __init__(self, frame: Frame, state: dict[str, Any]) -> None:
        self._frame = frame
        self._array: Image | None = None
        self._tensor: Any = None
        self.state = state

    @property
    def width(self) -> int:
        """Pixels of the source's picture."""
        return self._frame.width

    @property
    def height(self) -> int:
        """Pixels of the source's picture."""
        return self._frame.height

    @property
    def source(self) -> str:
        """Name of the source, its number where it has no name."""
        return getattr(self._frame, "source", "") or str(self._frame.source_id)

    @property
    def source_id(self) -> int:
        """Number of the source."""
        return self._frame.source_id

    @property
    def frame_number(self) -> int:
        """0-based, per source."""
        return self._frame.frame_number

    @property
    def pts(self) -> int:
        """Presentation time, nanoseconds."""
        return self._frame.pts

    @property
    def stream_time_s(self) -> float:
        """Presentation time, seconds."""
        return self._frame.pts / 1e9

    @property
    def time_utc(self) -> datetime | None:
        """When the frame was taken (cameras) or decoded (files); ``None`` where nobody knows."""
        nanoseconds = getattr(self._frame, "utc_ns", 0)
        return datetime.fromtimestamp(nanoseconds / 1e9, UTC) if 0 < nanoseconds < 2**63 else None

    @property
    def array(self) -> Image:
        """The picture: (height, width, 3) uint8 RGB, read-only. From GPU memory it is copied."""
        if self._array is None:
            if self._on_gpu() is not None:
                picture = self.tensor.cpu().numpy()
            else:
                picture = self._frame.resized(self.width, self.height).view()
            picture.flags.writeable = False
            self._array = picture
        return self._array

    @property
    def tensor(self) -> Any:
        """The picture as a torch tensor: (height, width, 3) uint8 RGB, on the GPU if the frame is there.

        It is a copy: it may be written and kept.
        """
        if self._tensor is None:
            import torch

            source = self._on_gpu()
            if source is None:
                self._tensor = torch.from_numpy(np.array(self._frame.resized(self.width, self.height)))
            else:
                self._tensor = _scaled(source, self.width, self.height)
        return self._tensor

    def resized(self, width: int, height: int, out: Image | None = None) -> Image:
        """The picture scaled to (height, width, 3) uint8 RGB, bilinear; much cheaper than scaling `array`.

        ``out``, where it is given, is filled and returned; without it the result may be read-only.
        """
        return self._frame.resized(width, height, out)

    def _on_gpu(self) -> Any:
        """The frame's own tensor, ``None`` in host memory."""
        if getattr(self._frame, "in_gpu_memory", False):
            import torch  # noqa: F401  the frame gives a tensor only where torch is in use
        return getattr(self._frame, "tensor", None)


def _scaled(picture: Any, width: int, height: int) -> Any:
    """A copy of a (h, w, 3) uint8 tensor at the given size: DeepStream's mux may have scaled the frame."""
    import torch

    if picture.shape[:2] == (height, width):
        return picture.clone(memory_format=torch.contiguous_format)
    planes = picture.permute(2, 0, 1)[None].float()
    planes = torch.nn.functional.interpolate(planes, (height, width), mode="bilinear", align_corners=False)
    return planes[0].permute(1, 2, 0).round().to(torch.uint8).contiguous()
