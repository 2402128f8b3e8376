"""Where tiles lie, and the picture they make; no GStreamer elements."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from elements.base import ElementError
from elements.portable.meta import DisplayMeta, FrameMeta, ObjectMeta, UserMeta
from elements.portable.picture import Image
from elements.portable.rescale import Scaling
from elements.portable.surface import Surface

_MOST_SOURCES = 128


@dataclass(frozen=True, slots=True)
class Grid:
    """Tiles in row-major order on a canvas; tile N shows the stream of pad N."""

    rows: int
    columns: int
    width: int  # pixels of the canvas
    height: int

    def tile(self, index: int) -> tuple[int, int, int, int]:
        """left, top, width, height of a tile in canvas pixels."""
        width, height = self.width // self.columns, self.height // self.rows
        row, column = divmod(index, self.columns)
        return column * width, row * height, width, height

    def holding(self, index: int, square: bool) -> Grid:
        """This grid, or NVIDIA's larger one if tile ``index`` does not fit.

        Raises:
            ElementError: beyond 128 sources.
        """
        if index < self.rows * self.columns:
            return self
        count = index + 1
        if count > _MOST_SOURCES:
            raise ElementError(f"source {index} cannot be tiled: at most {_MOST_SOURCES} sources")
        side = math.ceil(math.sqrt(count))
        rows = side if square else math.isqrt(count)
        return Grid(rows, side if square else math.ceil(count / rows), self.width, self.height)


@dataclass(slots=True)
class _Annotations:
    """What is drawn on one tile, in canvas pixels."""

    objects: list[ObjectMeta] = field(default_factory=list)
    displays: list[DisplayMeta] = field(default_factory=list)
    user: list[UserMeta] = field(default_factory=list)


class Canvas:
    """Composes tiles; a source that is absent keeps its last picture and metadata until its stream ends."""

    def __init__(self, grid: Grid, square: bool) -> None:
        self._grid, self._square, self._only = grid, square, -1
        self._picture: Image | None = None  # the last one, handed out and not written any more
        self._last: dict[int, _Annotations] = {}
        self._black: set[int] = set()  # streams that ended since the last picture

    def end(self, index: int) -> None:
        """A stream ended: its tile is black from now on."""
        self._last.pop(index, None)
        self._black.add(index)

    def compose(self, frames: Sequence[tuple[FrameMeta, Surface]], only: int = -1) -> tuple[FrameMeta, Surface]:
        """One canvas from at most one frame of each source.

        The frames' metadata is moved into the result, scaled. ``only`` shows that source alone on the whole canvas.

        Raises:
            ElementError: if ``only`` is no tile of the grid.
        """
        grid = self._grid_for(frames, only)
        picture = np.empty((grid.height, grid.width, 3), np.uint8)
        fresh = {frame.pad_index: (frame, surface) for frame, surface in frames if only in (-1, frame.pad_index)}
        if self._picture is None:
            picture[:] = 0
        elif len(fresh) < grid.rows * grid.columns:
            np.copyto(picture, self._picture)
        for index in self._black - fresh.keys():
            if index < grid.rows * grid.columns:
                left, top, width, height = grid.tile(index)
                picture[top : top + height, left : left + width] = 0
        self._black.clear()
        for index, last in self._last.items():
            if index not in fresh:
                self._last[index] = copy.deepcopy(last)  # the others have been handed out
        for index, (frame, surface) in fresh.items():
            left, top, width, height = grid.tile(0 if only >= 0 else index)
            surface.resample(width, height, out=picture[top : top + height, left : left + width])
            Scaling(width / surface.width, height / surface.height, left, top).apply(frame)
            self._last[index] = _Annotations(frame.objects, frame.displays, frame.user)
        self._picture = picture
        return self._frame(grid), Surface.of_array(picture)

    def _grid_for(self, frames: Sequence[tuple[FrameMeta, Surface]], only: int) -> Grid:
        grid = self._grid
        if only >= grid.rows * grid.columns:
            raise ElementError(f"show-source={only}: the grid has {grid.rows}x{grid.columns} tiles")
        for frame, _ in frames:
            grid = grid.holding(frame.pad_index, self._square)
        if (grid, only) != (self._grid, self._only):  # what is kept lies elsewhere
            self._grid, self._only, self._picture = grid, only, None
            self._last.clear()
        return Grid(1, 1, grid.width, grid.height) if only >= 0 else grid

    def _frame(self, grid: Grid) -> FrameMeta:
        parts = [self._last[index] for index in sorted(self._last)]
        return FrameMeta(
            source_width=grid.width,
            source_height=grid.height,
            pipeline_width=grid.width,
            pipeline_height=grid.height,
            objects=[item for part in parts for item in part.objects],
            displays=[item for part in parts for item in part.displays],
            user=[item for part in parts for item in part.user],
        )
