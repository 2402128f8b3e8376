"""How a stored picture is turned to stand upright: the values of GStreamer's image-orientation tag."""

from __future__ import annotations

from typing import NamedTuple

from elements.portable.picture import Image


class Orientation(NamedTuple):
    """``transposed``: rows and columns change places. Then ``mirrored``: left to right, ``flipped``: top to bottom."""

    transposed: bool = False
    mirrored: bool = False
    flipped: bool = False

    def size(self, width: int, height: int) -> tuple[int, int]:
        """Of the upright picture, of one that is stored with this size; and the other way round."""
        return (height, width) if self.transposed else (width, height)

    def upright(self, plane: Image) -> Image:
        """A view of a stored plane, (H, W) or (H, W, C)."""
        turned = plane.swapaxes(0, 1) if self.transposed else plane
        return turned[:: -1 if self.flipped else 1, :: -1 if self.mirrored else 1]

    def walk(self, address: int, pitch: int, step: int, width: int, height: int) -> tuple[int, int, int]:
        """The same for memory: address of the upright plane's first sample, bytes from row to row and side by side.

        ``pitch`` and ``step`` are those of the stored plane, ``width`` and ``height`` the upright one's.
        """
        if self.transposed:
            pitch, step = step, pitch
        if self.mirrored:
            address, step = address + (width - 1) * step, -step
        if self.flipped:
            address, pitch = address + (height - 1) * pitch, -pitch
        return address, pitch, step


UPRIGHT = Orientation()
ORIENTATIONS = {
    "rotate-0": UPRIGHT,
    "rotate-90": Orientation(transposed=True, mirrored=True),
    "rotate-180": Orientation(mirrored=True, flipped=True),
    "rotate-270": Orientation(transposed=True, flipped=True),
    "flip-rotate-0": Orientation(mirrored=True),
    "flip-rotate-90": Orientation(transposed=True, mirrored=True, flipped=True),
    "flip-rotate-180": Orientation(flipped=True),
    "flip-rotate-270": Orientation(transposed=True),
}
