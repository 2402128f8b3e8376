"""Shapes and texts on pictures, pixel by pixel."""

import math

import cv2
import numpy as np
import pytest

from elements.portable import osd
from elements.portable.drawing import blur_box, draw_arrow, draw_circle, draw_line, draw_mask, draw_rect
from elements.portable.labels import draw_label
from elements.portable.meta import DisplayMeta, FrameMeta, ObjectMeta
from elements.portable.overlay import Overlay

RED, GREEN, BLUE = (255, 0, 0), (0, 255, 0), (0, 0, 255)


def picture(width: int = 100, height: int = 80, grey: int = 0) -> np.ndarray:
    return np.full((height, width, 3), grey, np.uint8)


def color(rgb: tuple[int, int, int], alpha: float = 1.0) -> osd.Color:
    return osd.Color(*(part / 255 for part in rgb), alpha)


def rect(left, top, width, height, border=1, fill=None, angle=0.0, tint=RED) -> osd.Rect:
    made = osd.Rect()
    made.left, made.top, made.width, made.height, made.rotation_angle = left, top, width, height, angle
    made.border_width, made.border_color = border, color(tint)
    if fill:
        made.has_bg_color, made.bg_color = 1, fill
    return made


def painted_columns(image: np.ndarray, row: int) -> list[int]:
    return np.flatnonzero(image[row].any(axis=1)).tolist()


def painted_box(image: np.ndarray) -> tuple[int, int, int, int]:
    """First and last column and row painted at least by half: x1, y1, x2, y2 (included)."""
    rows, columns = np.nonzero(image.max(axis=2) > 127)
    return columns.min(), rows.min(), columns.max(), rows.max()


# --- rectangles -------------------------------------------------------------------------------------------------------


def test_border_lies_inside_of_the_box() -> None:
    image = picture()
    draw_rect(image, rect(10, 20, 30, 40, border=2))
    assert painted_box(image) == (10, 20, 39, 59)
    assert painted_columns(image, 40) == [10, 11, 38, 39]
    assert painted_columns(image, 21) == list(range(10, 40))
    assert image[40, 10].tolist() == [255, 0, 0]


@pytest.mark.parametrize(
    ("left", "width", "first", "last"),
    [(10.4, 20.0, 10, 29), (10.5, 20.0, 11, 30), (10.4, 20.2, 10, 30), (9.6, 0.2, 10, 10)],
)
def test_edges_between_pixels_go_to_the_nearest(left: float, width: float, first: int, last: int) -> None:
    image = picture()
    draw_rect(image, rect(left, 20, width, 20))
    assert (painted_columns(image, 30)[0], painted_columns(image, 30)[-1]) == (first, last)


def test_no_border_no_fill_paints_nothing() -> None:
    image = picture()
    draw_rect(image, rect(10, 10, 20, 20, border=0))
    assert not image.any()


def test_fill_is_blended_by_its_alpha() -> None:
    image = picture(grey=100)
    draw_rect(image, rect(10, 10, 20, 20, border=0, fill=color((200, 0, 0), 0.4)))
    assert image[15, 15].tolist() == [140, 60, 60]  # 0.6 * 100 + 0.4 * (200, 0, 0)
    assert image[15, 9].tolist() == image[15, 30].tolist() == [100, 100, 100]


def test_a_box_that_leaves_the_picture_is_cut() -> None:
    image = picture()
    draw_rect(image, rect(-50, 20, 80, 100, border=3))
    assert painted_columns(image, 50) == [27, 28, 29]
    assert not image[79, :27].any()


def test_positive_angle_turns_clockwise_about_the_centre() -> None:
    flat, turned = picture(), picture()
    draw_rect(turned, rect(20, 30, 60, 20, border=0, fill=color(GREEN), angle=90))
    draw_rect(flat, rect(40, 10, 20, 60, border=0, fill=color(GREEN)))
    assert np.abs(np.subtract(painted_box(turned), painted_box(flat))).max() <= 1
    tilted = picture()
    draw_rect(tilted, rect(20, 30, 60, 20, border=0, fill=color(GREEN), angle=30))
    assert tilted[50, 70].any()  # the right end went down
    assert tilted[28, 30].any()  # the left end went up
    assert not tilted[32, 75].any()


def test_border_of_a_turned_box_keeps_inside_of_it() -> None:
    image = picture()
    draw_rect(image, rect(20, 30, 60, 20, border=4, angle=180))
    x1, y1, x2, y2 = painted_box(image)
    assert abs(x1 - 20) <= 1
    assert abs(y1 - 30) <= 1
    assert abs(x2 - 79) <= 1
    assert abs(y2 - 49) <= 1
    assert not image[40, 30:70].any()


@pytest.mark.parametrize("angle", [0.0, 33.0])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e30, -1e30, 0.0, -5.0])
@pytest.mark.parametrize("field", ["left", "top", "width", "height"])
def test_odd_places_do_no_harm(field: str, value: float, angle: float) -> None:
    image = picture()
    box = rect(10, 10, 20, 20, border=3, fill=color(RED, 0.5), angle=angle)
    setattr(box, field, value)
    mask = osd.Mask()
    mask.mask_array = np.ones((4, 4), np.float32)
    draw_rect(image, box)
    draw_mask(image, box, mask)
    blur_box(image, box)


def test_a_huge_border_fills_the_box_only() -> None:
    for angle in (0.0, 45.0):
        image = picture(400, 400)
        draw_rect(image, rect(190, 190, 20, 20, border=2**32 - 1, angle=angle))
        assert image[200, 200].tolist() == [255, 0, 0]
    assert painted_box(draw_on(picture(), rect(10, 10, 9, 7, border=1000))) == (10, 10, 18, 16)


def draw_on(image: np.ndarray, box: osd.Rect) -> np.ndarray:
    draw_rect(image, box)
    return image


# --- masks and blur ---------------------------------------------------------------------------------------------------


def test_mask_covers_the_box_and_tints_above_the_threshold() -> None:
    image, mask = picture(grey=100), osd.Mask()
    mask.mask_array, mask.threshold = np.array([[0, 1], [0, 1]], np.float32), 0.5
    draw_mask(image, rect(20, 10, 40, 20), mask)
    assert image[15, 58].tolist() == [178, 50, 50]  # half of (255, 0, 0), half of grey 100
    assert image[15, 22].tolist() == [100, 100, 100]
    assert image[15, 39].tolist() == [100, 100, 100]  # the middle is at column 40
    assert image[15, 41].tolist() == [178, 50, 50]
    assert image[15, 60].tolist() == image[9, 50].tolist() == [100, 100, 100]


def test_mask_of_a_cut_box_keeps_its_place() -> None:
    image, mask = picture(), osd.Mask()
    mask.mask_array, mask.threshold = np.array([[1, 0]], np.float32), 0.5
    draw_mask(image, rect(-40, 10, 80, 20, fill=color(GREEN)), mask)
    assert not image.any()  # the tinted half is left of the picture
    draw_mask(image, rect(-20, 10, 80, 20, fill=color(GREEN)), mask)
    assert painted_columns(image, 15) == list(range(20))


def test_blur_hides_the_inside_and_only_that() -> None:
    image = np.random.default_rng(1).integers(0, 256, (80, 100, 3), dtype=np.uint8)
    before = image.copy()
    blur_box(image, rect(20, 20, 40, 40))
    assert image[25:55, 25:55].std() < before[25:55, 25:55].std() / 3
    image[20:60, 20:60] = before[20:60, 20:60]
    assert np.array_equal(image, before)


# --- lines, arrows, circles -------------------------------------------------------------------------------------------


def line(kind, x1, y1, x2, y2, width=1):
    made = kind()
    made.x1, made.y1, made.x2, made.y2, made.width, made.color = x1, y1, x2, y2, width, color(BLUE)
    return made


def test_line_goes_from_start_to_end() -> None:
    image = picture()
    draw_line(image, line(osd.Line, 10, 20, 60, 20))
    assert (painted_columns(image, 20)[0], painted_columns(image, 20)[-1]) == (10, 61)  # the smooth end
    assert image[20, 12:58, 2].min() > 200
    assert not image[20, 12:58, :2].any()
    assert not image[24, 30].any()


def test_arrow_has_its_head_where_it_says() -> None:
    heights = {}
    for head in osd.ArrowHead:
        image, arrow = picture(), line(osd.Arrow, 10, 40, 90, 40, 2)
        arrow.head = head
        draw_arrow(image, arrow)
        heights[head] = tuple(int(image[:, x].any(axis=1).sum()) > 6 for x in (18, 82))
    assert heights == {
        osd.ArrowHead.Start: (True, False),
        osd.ArrowHead.End: (False, True),
        osd.ArrowHead.Both: (True, True),
    }


def test_circle_is_filled_and_outlined() -> None:
    image, circle = picture(), osd.Circle()
    circle.xc, circle.yc, circle.radius, circle.color, circle.width = 50, 40, 20, color(RED), 2
    circle.has_bg_color, circle.bg_color = 1, color(GREEN)
    draw_circle(image, circle)
    assert image[40, 50].tolist() == [0, 255, 0]
    assert image[40, 70].tolist() == image[20, 50].tolist() == [255, 0, 0]
    assert not image[40, 74].any()


def test_wrapped_and_far_places_do_no_harm() -> None:
    image, far = picture(), 2**32 - 512  # what a negative place becomes in an unsigned field
    draw_line(image, line(osd.Line, far, far, 0, far, 2**32 - 1))
    draw_arrow(image, line(osd.Arrow, 0, 0, far, 5, 3))
    draw_arrow(image, line(osd.Arrow, 5, 5, 5, 5, 3))
    circle = osd.Circle()
    circle.xc = circle.yc = circle.radius = circle.width = 2**32 - 1
    circle.color = circle.bg_color = color(RED)
    circle.has_bg_color = 1
    draw_circle(image, circle)


# --- texts ------------------------------------------------------------------------------------------------------------


def test_label_begins_at_its_place_with_its_background() -> None:
    image = picture(200, 80)
    draw_label(image, "person 1", (30, 20), 12, color((255, 255, 255)), color(BLUE))
    x1, y1, x2, y2 = painted_box(image)
    assert (x1, y1) == (30, 20)
    assert 20 <= y2 - y1 <= 30  # 12 points are 16 pixels, and a margin
    assert 60 <= x2 - x1 <= 100
    assert image[20, 30].tolist() == [0, 0, 255]
    assert (image == 255).all(axis=2).any()


@pytest.mark.parametrize("place", [(0, 0), (190, 75), (5000, 5000), (2**32 - 20, 2**32 - 20)])
def test_label_is_moved_into_the_picture_whole(place: tuple[int, int]) -> None:
    image, free = picture(200, 80), picture(200, 80)
    draw_label(image, "person 1", place, 10, color(GREEN), color(RED))
    draw_label(free, "person 1", (30, 30), 10, color(GREEN), color(RED))
    assert image.any(axis=2).sum() == free.any(axis=2).sum()


def test_background_of_a_label_is_blended() -> None:
    image = picture(200, 80, grey=100)
    draw_label(image, "a", (30, 20), 12, color((255, 255, 255)), color((0, 0, 0), 0.5))
    assert image[20, 30].tolist() == [50, 50, 50]


@pytest.mark.parametrize("text", ["Пешеход", "行人", "شخص", "人物", "사람", "אדם", "Ä"])
def test_scripts_are_drawn_not_replaced(text: str) -> None:
    image, marks = picture(300, 60), picture(300, 60)
    draw_label(image, text, (0, 0), 20, color(GREEN))
    draw_label(marks, "?" * len(text), (0, 0), 20, color(GREEN))
    assert image.any()
    assert not np.array_equal(image, marks)


def test_empty_and_blank_texts_draw_nothing() -> None:
    image = picture()
    for text in ("", "   ", "\n"):
        draw_label(image, text, (0, 0), 12, color(RED), color(RED))
    assert not image.any()


def test_long_text_and_small_picture() -> None:
    image = picture(40, 10)
    draw_label(image, "x" * 10_000, (0, 0), 60, color(RED), color(BLUE))
    assert image.any()
    lines = picture(200, 100)
    draw_label(lines, "one\ntwo", (0, 0), 12, color(RED))
    assert painted_box(lines)[3] > 25  # below the first line


def test_old_opencv_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    from elements.portable import labels

    monkeypatch.delattr(cv2, "FontFace")
    labels._font_face.cache_clear()
    with pytest.raises(RuntimeError, match=r"install opencv-python 5\.0"):
        draw_label(picture(), "only here", (0, 0), 12, color(RED))


# --- what is drawn of a frame -----------------------------------------------------------------------------------------


def labelled_object() -> ObjectMeta:
    item = ObjectMeta(class_id=1, unique_component_id=7, rect=rect(10, 30, 40, 30, border=2))
    item.text.display_text, item.text.x_offset, item.text.y_offset = "cat", 10, 5
    item.text.font_params.size, item.text.font_params.color = 10, color(GREEN)
    return item


def test_overlay_switches() -> None:
    frame = FrameMeta(objects=[labelled_object()])
    for overlay, red, green in ((Overlay(), 1, 1), (Overlay(text=False), 1, 0), (Overlay(boxes=False), 0, 1)):
        image = picture()
        overlay.draw(image, frame)
        assert (image[..., 0].any(), image[..., 1].any()) == (bool(red), bool(green))
    assert Overlay(text=False, boxes=False).is_empty(frame)
    assert not Overlay(text=False, boxes=False, blurred=frozenset({(7, 1)})).is_empty(frame)
    assert Overlay().is_empty(FrameMeta(objects=[ObjectMeta()], displays=[DisplayMeta()]))


def test_masks_are_drawn_when_asked_for_and_texts_lie_over_boxes() -> None:
    item = labelled_object()
    item.mask.mask_array = np.ones((2, 2), np.float32)
    frame = FrameMeta(objects=[item])
    image = picture()
    Overlay(masks=True).draw(image, frame)
    assert image[45, 30].tolist() == [128, 0, 0]
    item.rect.has_bg_color, item.rect.bg_color = 1, color(BLUE)
    item.text.y_offset = 32
    Overlay().draw(image, frame)
    assert (image[..., 1] > 200).any()
