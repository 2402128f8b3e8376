"""Polygons to pixels: anti-aliased patches, and putting them into a picture."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from tools.scenes.shapes import Polygons

_SHIFT = 4  # fractional bits of OpenCV's polygon coordinates


@dataclass(frozen=True)
class Patch:
    """A drawn figure cut to its place in the picture.

    Attributes:
        x, y: pixel position of the top left corner.
        colour: (h, w, 3) uint8 RGB, multiplied by alpha.
        alpha: (h, w) uint8 coverage.
    """

    x: int
    y: int
    colour: NDArray[np.uint8]
    alpha: NDArray[np.uint8]

    @property
    def window(self) -> tuple[slice, slice]:
        """Rows and columns of the picture that the patch covers."""
        height, width = self.alpha.shape
        return slice(self.y, self.y + height), slice(self.x, self.x + width)


def draw(polygons: Polygons, width: int, height: int) -> Patch | None:
    """Draws polygons in order with at least four samples per pixel, cut to a picture of the given size.

    Returns:
        None when nothing lies inside the picture.
    """
    if not polygons.points:
        return None
    corners = np.concatenate(polygons.points)
    left, top = np.maximum(np.floor(corners.min(axis=0)).astype(int) - 1, 0)
    right, bottom = np.minimum(np.ceil(corners.max(axis=0)).astype(int) + 1, (width, height))
    if right <= left or bottom <= top:
        return None
    scale = 4 if max(right - left, bottom - top) < 96 else 2
    canvas = np.zeros(((bottom - top) * scale, (right - left) * scale, 4), np.uint8)
    # OpenCV's integer coordinates are pixel centres.
    fixed = ((corners - (left, top)) * scale - 0.5) * (1 << _SHIFT)
    fixed = np.rint(fixed).astype(np.int32)
    start = 0
    for polygon, (red, green, blue) in zip(polygons.points, polygons.colours.tolist(), strict=True):
        end = start + len(polygon)
        cv2.fillPoly(canvas, [fixed[start:end]], (red, green, blue, 255), cv2.LINE_8, _SHIFT)
        start = end
    small = cv2.resize(canvas, (right - left, bottom - top), interpolation=cv2.INTER_AREA)
    return Patch(int(left), int(top), small[..., :3], np.ascontiguousarray(small[..., 3]))


def compose(picture: NDArray[np.uint8], patch: Patch, opacity: float = 1.0) -> None:
    """Lays a patch over `picture` (H, W, 3) in place."""
    # convertScaleAbs computes |255 - opacity * alpha|.
    area = picture[patch.window]
    clear = cv2.cvtColor(cv2.convertScaleAbs(patch.alpha, alpha=-opacity, beta=255.0), cv2.COLOR_GRAY2RGB)
    colour = cv2.convertScaleAbs(patch.colour, alpha=opacity) if opacity < 1.0 else patch.colour
    cv2.multiply(area, clear, dst=clear, scale=1 / 255)
    picture[patch.window] = cv2.add(clear, colour)


def solid(patch: Patch) -> NDArray[np.bool_]:
    """(h, w) True where the figure covers more than half of the pixel."""
    return patch.alpha > 128


def extent(patch: Patch) -> tuple[int, int, int, int] | None:
    """Box (x1, y1, x2, y2) in picture pixels around the solid part, x2 and y2 exclusive; None when empty."""
    covered = solid(patch)
    columns = np.flatnonzero(covered.any(axis=0))
    rows = np.flatnonzero(covered.any(axis=1))
    if not len(columns):
        return None
    return (
        patch.x + int(columns[0]),
        patch.y + int(rows[0]),
        patch.x + int(columns[-1]) + 1,
        patch.y + int(rows[-1]) + 1,
    )
