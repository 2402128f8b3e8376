"""From Detections through metadata, style and key points to the picture, at the mux's size."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest

from elements.metadata.detections import Detections
from elements.metadata.placement import Placement
from elements.metadata.writer import write_detections
from elements.portable import osd
from elements.portable.meta import BatchMeta, FrameMeta
from elements.portable.overlay import Overlay
from elements.portable.pyservicemaker.metadata import BatchMetadata

SOURCE, MUX = (320, 180), (640, 480)  # scaled by 2, 60 pixels from the top
BOX = (50.0, 40.0, 150.0, 120.0)
STYLE = {"labels": True, "ids": True, "confidence": False, "line_width": 2, "font_size": 12}
BLUE = [0, 191, 255]  # the palette's first
GREY = 100


class Drawing:
    """Detections written to a frame, styled, and painted on a grey picture."""

    def __init__(self, found: Detections, masks: bool = True, **style: Any) -> None:
        self.frame = FrameMeta(
            source_width=SOURCE[0], source_height=SOURCE[1], pipeline_width=MUX[0], pipeline_height=MUX[1]
        )
        self.batch = BatchMeta(frames=[self.frame])
        handle = BatchMetadata(self.batch)
        for frame in handle.frame_items:
            write_detections(handle, frame, found, Placement.padded(SOURCE, MUX), ("cat", "dog"), 1, osd)
        self._operate("style:DrawStyle", **{**STYLE, **style})
        self._operate("keypoints:DrawKeypoints", line_width=2)
        self.picture = np.full((MUX[1], MUX[0], 3), GREY, np.uint8)
        self.overlay = Overlay(masks=masks)
        self.overlay.draw(self.picture, self.frame)

    def _operate(self, name: str, **params: Any) -> None:
        module, kind = name.split(":")
        make = getattr(importlib.import_module(f"pipelines.operators.{module}"), kind)
        make(report=lambda text, trace: pytest.fail(f"{text}\n{trace}"), **params).handle_metadata(
            BatchMetadata(self.batch)
        )

    @property
    def text(self) -> str:
        return self.frame.objects[0].text.display_text


@pytest.fixture(autouse=True)
def _api(pyservicemaker: object) -> None:
    """Operators derive from its classes."""


def found(*boxes: tuple[float, ...], **more: Any) -> Detections:
    return Detections(np.array(boxes), np.full(len(boxes), 0.75), np.zeros(len(boxes)), **more)


def painted(picture: np.ndarray) -> np.ndarray:
    return (picture != GREY).any(axis=2)


def ellipse(width: int, height: int, angle: float = 0.0, scale: float = 1.0, top: float = 0.0) -> np.ndarray:
    """An ellipse about the box's centre (100, 80) with a bay, in pixels of the source, scaled and moved."""
    rows, columns = np.mgrid[:height, :width] + 0.5
    x, y = columns / scale - 100, (rows - top) / scale - 80
    along, across = x * math.cos(angle) + y * math.sin(angle), y * math.cos(angle) - x * math.sin(angle)
    return ((along / 49) ** 2 + (across / 36) ** 2 < 1) & ~((along > 10) & (across > 5))


def iou(a: np.ndarray, b: np.ndarray) -> float:
    return float((a & b).sum() / (a | b).sum())


def test_the_box_is_where_the_truth_is():
    picture = Drawing(found(BOX), labels=False).picture
    rows, columns = np.nonzero(painted(picture))
    # (50, 40) - (150, 120) twice as large and 60 lower
    assert (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1) == (100, 140, 300, 300)
    assert picture[140, 200].tolist() == picture[299, 200].tolist() == picture[200, 101].tolist() == BLUE
    assert picture[142, 200].tolist() == [GREY] * 3


@pytest.mark.parametrize("angle", [0.0, math.radians(30), math.radians(-100)])
def test_masks_are_tinted_where_the_object_is(angle):
    mask = ellipse(*SOURCE, angle)
    masked = found(BOX, masks=mask[None], angles=np.array([angle], np.float32))
    picture = Drawing(masked, labels=False, line_width=0).picture
    assert iou(painted(picture), ellipse(*MUX, angle, 2, 60)) > 0.97
    assert picture[220, 200].tolist() == [50, 146, 178]  # half of it is the class colour


def test_masks_can_be_left_out():
    masked = found(BOX, masks=ellipse(*SOURCE)[None])
    assert not painted(Drawing(masked, masks=False, labels=False, line_width=0).picture).any()


def test_rotated_boxes_have_their_corners():
    turned = found((50, 60, 150, 100), angles=np.array([math.pi / 6], np.float32))
    picture = painted(Drawing(turned, labels=False).picture)
    cos, sin = math.cos(math.pi / 6), math.sin(math.pi / 6)
    for dx, dy in ((-98, -38), (98, -38), (98, 38), (-98, 38)):  # 2 pixels inside of the corners, about (200, 220)
        assert picture[round(220 + dx * sin + dy * cos), round(200 + dx * cos - dy * sin)]
    assert not picture[220, 200]


def test_key_points_and_skeleton():
    points = np.zeros((1, 17, 3), np.float32)
    points[0, 5], points[0, 6], points[0, 7] = (70, 60, 0.9), (130, 60, 0.8), (60, 100, 0.2)
    drawing = Drawing(found(BOX, keypoints=points), labels=False, line_width=0)
    for x, y in ((70, 60), (130, 60), (100, 60)):  # both shoulders and the line between them
        assert drawing.picture[60 + 2 * y, 2 * x].tolist() == BLUE
    assert not painted(drawing.picture)[60 + 2 * 100, 2 * 60]  # too uncertain
    (display,) = drawing.frame.displays
    assert (len(display.circles), len(display.lines), display.circles[0].radius) == (2, 1, 3)


def test_other_key_points_are_dots_only():
    points = np.array([[[60, 60, 1], [100, 80, 1], [140, 100, 1]]], np.float32)
    drawing = Drawing(found(BOX, keypoints=points), labels=False, line_width=0)
    assert [len(display.lines) for display in drawing.frame.displays] == [0]
    dots = painted(drawing.picture)
    for x, y in points[0, :, :2].astype(int).tolist():
        assert drawing.picture[60 + 2 * y, 2 * x].tolist() == BLUE
        dots[60 + 2 * y - 5 : 60 + 2 * y + 6, 2 * x - 5 : 2 * x + 6] = False
    assert not dots.any()


def test_many_key_points_take_several_display_metas():
    """DeepStream ignores what goes beyond 16 of a kind."""
    points = np.ones((3, 17, 3), np.float32) * (80, 80, 1)
    drawing = Drawing(found(BOX, BOX, BOX, keypoints=points))
    displays = drawing.frame.displays
    assert [len(d.circles) for d in displays] == [16, 16, 16, 3]
    assert [len(d.lines) for d in displays] == [16, 16, 16, 9]


def test_points_outside_and_unknown_ones_are_left_out():
    points = np.array([[[-40, 20, 1], [20, -40, 1], [np.nan, 1, 1], [160, 90, np.nan]]], np.float32)
    assert Drawing(found(BOX, keypoints=points)).frame.displays == []


def test_labels_of_classifiers_are_in_the_text():
    attributes = [{"colour": "red", "kind": {"label": "tabby", "probability": 0.5}}]
    classified = found(BOX, attributes=attributes, track_ids=np.array([4]))
    assert Drawing(classified).text == "cat #4 red tabby"
    assert Drawing(classified, attributes=False).text == "cat #4"
    assert Drawing(classified, labels=False).text == ""


def test_nothing_to_draw_costs_no_picture():
    drawing = Drawing(found())
    assert drawing.frame.displays == []
    assert drawing.overlay.is_empty(drawing.frame)
    assert not painted(drawing.picture).any()
