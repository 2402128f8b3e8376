"""Metadata follows the picture, as observed on NVIDIA's nvvideoconvert."""

import pytest

from elements.portable import osd, rescale
from elements.portable.meta import DisplayMeta, FrameMeta, ObjectMeta
from elements.portable.rescale import Scaling, flip


def annotated() -> FrameMeta:
    item = ObjectMeta(detector_box=(100, 50, 40, 20))
    rect = item.rect
    rect.left, rect.top, rect.width, rect.height, rect.border_width, rect.rotation_angle = 100, 50, 40, 20, 3, 30
    item.text.x_offset, item.text.y_offset, item.text.font_params.size = 100, 40, 11
    line, circle, text = osd.Line(), osd.Circle(), osd.Text()
    line.x1, line.y1, line.x2, line.y2, line.width = 10, 20, 30, 40, 4
    circle.xc, circle.yc, circle.radius = 50, 60, 8
    text.x_offset, text.y_offset, text.font.size = 7, 9, 11
    return FrameMeta(objects=[item], displays=[DisplayMeta(lines=[line], circles=[circle], texts=[text])])


def test_half_size() -> None:
    frame = annotated()
    Scaling(0.5, 0.5).apply(frame)
    item, display = frame.objects[0], frame.displays[0]
    assert (item.rect.left, item.rect.top, item.rect.width, item.rect.height) == (50, 25, 20, 10)
    assert (item.rect.border_width, item.rect.rotation_angle, item.detector_box) == (3, 30, (100, 50, 40, 20))
    assert (item.text.x_offset, item.text.y_offset, item.text.font_params.size) == (50, 20, 5)
    line, circle, text = display.lines[0], display.circles[0], display.texts[0]
    assert (line.x1, line.y1, line.x2, line.y2, line.width) == (5, 10, 15, 20, 4)
    assert (circle.xc, circle.yc, circle.radius) == (25, 30, 4)
    assert (text.x_offset, text.y_offset, text.font.size) == (3, 4, 11)


def test_half_width_keeps_fonts() -> None:
    frame = annotated()
    Scaling(0.5, 1).apply(frame)
    assert (frame.objects[0].rect.left, frame.objects[0].rect.top) == (50, 50)
    assert frame.objects[0].text.font_params.size == 11


def test_a_crop_may_push_boxes_out_but_not_texts() -> None:
    frame = annotated()
    Scaling(1, 1, -120, -45).apply(frame)
    assert (frame.objects[0].rect.left, frame.objects[0].rect.top) == (-20, 5)
    assert (frame.objects[0].text.x_offset, frame.objects[0].text.y_offset) == (0, 0)


@pytest.mark.parametrize(
    ("method", "box", "angle"),
    [
        (rescale.COUNTERCLOCKWISE, (50, 180, 20, 40), 30),
        (rescale.ROTATE_180, (180, 130, 40, 20), 30),
        (rescale.CLOCKWISE, (130, 100, 20, 40), 30),
        (rescale.HORIZONTAL, (180, 50, 40, 20), -30),
        (rescale.VERTICAL, (100, 130, 40, 20), -30),
        (rescale.UPPER_LEFT, (50, 100, 20, 40), -30),
        (rescale.UPPER_RIGHT, (130, 180, 20, 40), -30),
    ],
)
def test_flips_of_a_frame_of_320_by_200(method: int, box: tuple[int, ...], angle: float) -> None:
    frame = annotated()
    flip(frame, method, 320, 200)
    rect = frame.objects[0].rect
    assert (rect.left, rect.top, rect.width, rect.height, rect.rotation_angle) == (*box, angle)
