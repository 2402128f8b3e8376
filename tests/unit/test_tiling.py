"""Tiles: where they lie, what they keep, when they turn black."""

import numpy as np
import pytest

from elements.base import ElementError
from elements.portable.meta import FrameMeta, ObjectMeta
from elements.portable.surface import Surface
from elements.portable.tiling import Canvas, Grid


def frame(pad: int, value: int, box: tuple[float, float, float, float] | None = None) -> tuple[FrameMeta, Surface]:
    meta = FrameMeta(pad_index=pad)
    if box:
        item = ObjectMeta(label=f"pad {pad}")
        item.rect.left, item.rect.top, item.rect.width, item.rect.height = box
        item.text.x_offset, item.text.y_offset, item.text.font_params.size = int(box[0]), int(box[1]), 12
        meta.objects.append(item)
    return meta, Surface.of_array(np.full((40, 80, 3), value, np.uint8))


def corners(surface: Surface) -> list[int]:
    """Value in the middle of each tile of a 2x2 grid on 80x40."""
    rgb = surface.rgb()
    return [int(rgb[y, x, 0]) for y in (10, 30) for x in (20, 60)]


def test_tiles_are_row_major() -> None:
    grid = Grid(2, 3, 300, 100)
    assert grid.tile(0) == (0, 0, 100, 50)
    assert grid.tile(4) == (100, 50, 100, 50)


@pytest.mark.parametrize(("index", "square", "rows", "columns"), [(3, False, 2, 2), (4, False, 2, 3), (4, True, 3, 3)])
def test_a_grid_grows_as_nvidias(index: int, square: bool, rows: int, columns: int) -> None:
    grown = Grid(1, 1, 100, 100).holding(index, square)
    assert (grown.rows, grown.columns) == (rows, columns)


def test_too_many_sources() -> None:
    with pytest.raises(ElementError, match="128"):
        Grid(1, 1, 10, 10).holding(128, False)


def test_absent_sources_keep_their_picture_until_they_end() -> None:
    canvas = Canvas(Grid(2, 2, 80, 40), False)
    _, surface = canvas.compose([frame(0, 10), frame(1, 20), frame(3, 40)])
    assert corners(surface) == [10, 20, 0, 40]
    _, surface = canvas.compose([frame(1, 21)])
    assert corners(surface) == [10, 21, 0, 40]
    canvas.end(3)
    _, surface = canvas.compose([frame(1, 22)])
    assert corners(surface) == [10, 22, 0, 0]
    _, surface = canvas.compose([frame(3, 44)])
    assert corners(surface) == [10, 22, 0, 44]


def test_boxes_move_to_their_tile_and_stay_with_the_picture() -> None:
    canvas = Canvas(Grid(2, 2, 80, 40), False)
    meta, _ = canvas.compose([frame(0, 1), frame(3, 1, (40, 20, 8, 4))])
    (item,) = meta.objects
    assert (item.rect.left, item.rect.top, item.rect.width, item.rect.height) == (60, 30, 4, 2)
    assert (item.text.x_offset, item.text.y_offset, item.text.font_params.size) == (60, 30, 6)
    again, _ = canvas.compose([frame(0, 2, (0, 0, 8, 8))])
    assert [o.label for o in again.objects] == ["pad 0", "pad 3"]
    assert again.objects[1] == item
    assert again.objects[1] is not item
    canvas.end(3)
    assert [o.label for o in canvas.compose([frame(0, 2)])[0].objects] == []


def test_painting_a_canvas_does_not_reach_the_next_one() -> None:
    canvas = Canvas(Grid(1, 2, 80, 40), False)
    _, first = canvas.compose([frame(0, 5), frame(1, 6)])
    first.rgb(write=True)[:] = 200
    _, second = canvas.compose([frame(0, 5)])
    assert int(second.rgb()[20, 60, 0]) == 6


def test_one_source_alone() -> None:
    canvas = Canvas(Grid(2, 2, 80, 40), False)
    canvas.compose([frame(0, 1, (0, 0, 8, 8)), frame(1, 2, (0, 0, 8, 8))])
    meta, surface = canvas.compose([frame(0, 3, (0, 0, 8, 8)), frame(1, 4, (0, 0, 8, 8))], only=1)
    assert corners(surface) == [4, 4, 4, 4]
    assert [(o.label, o.rect.width) for o in meta.objects] == [("pad 1", 8)]
    with pytest.raises(ElementError, match="show-source=4"):
        canvas.compose([frame(0, 1)], only=4)


def test_a_new_source_makes_room() -> None:
    canvas = Canvas(Grid(1, 1, 80, 40), False)
    canvas.compose([frame(0, 9)])
    _, surface = canvas.compose([frame(0, 9), frame(3, 8)])
    assert corners(surface) == [9, 0, 0, 8]
