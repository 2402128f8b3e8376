"""Objects of a frame -> tracks -> objects: what nvtracker does to the metadata of one source."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import numpy as np

from elements.metadata.detections import FloatArray
from elements.metadata.rotated import degrees
from elements.portable import osd
from elements.portable.meta import PREDICTED_CONFIDENCE, FrameMeta, ObjectMeta
from elements.portable.tracking.tracker import UNCONFIRMED, SourceTracker

_TRACKER_CONFIDENCE = 1.0  # there is no visual tracker that could measure one
_LIMIT = 1e6  # pixels; keeps the filter's arithmetic finite
_TEXT_SIZE, _TEXT_RISE = 10, 20  # DeepStream's label: Serif 10, white on black, 20 px above the box
_WHITE, _BLACK = osd.Color(1.0, 1.0, 1.0, 1.0), osd.Color(0.0, 0.0, 0.0, 1.0)


@dataclass(slots=True)
class _Look:
    """What predicted objects of a track look like: the style of its first object, the words of its last.

    Copies, because what the objects hold is changed downstream (scaled by a tiler, for example).
    """

    class_id: int
    unique_component_id: int
    rect: osd.Rect
    text: osd.TextParams
    label: str = ""
    words: str = ""
    turns: bool = False


class SourceObjects:
    """Tracks the objects of one source, frame after frame.

    Args:
        tracker: the tracks.
        class_ids: classes to track; others pass untouched. None tracks all.
        display_id: append the id to the text of each object.
    """

    def __init__(
        self, tracker: SourceTracker, class_ids: frozenset[int] | None = None, display_id: bool = True
    ) -> None:
        self.tracker = tracker
        self.class_ids = class_ids
        self.display_id = display_id
        self._looks: dict[int, _Look] = {}

    def process(self, frame: FrameMeta, time_s: float) -> None:
        """Give ids to the frame's objects, remove those without an active target, add predicted ones.

        A frame counts as inferred if it says so or holds objects to track: a probe that adds objects cannot set the
        flag. Matched objects keep the detector's box, which is nearer to the picture than the filtered one of the
        target; that one is in ``tracker_box``. Where it turns, sides and angle (degrees, -180 to 180) continue those
        of the frames before: detectors name one outline now by these sides and angle, now by others.
        """
        mine = [o for o in frame.objects if self.class_ids is None or o.class_id in self.class_ids]
        if frame.infer_done or mine:
            self._match(frame, mine, time_s)
        else:
            self._predict(frame, time_s)

    def forget(self) -> None:
        """End all tracks."""
        self.tracker.clear()
        self._looks.clear()

    def _match(self, frame: FrameMeta, mine: list[ObjectMeta], time_s: float) -> None:
        boxes = np.array([(*_corners(o.rect), math.radians(o.rect.rotation_angle)) for o in mine], np.float32)
        boxes = boxes.reshape(-1, 5)
        scores = np.array([o.confidence for o in mine], np.float32)
        class_ids = np.array([o.class_id for o in mine], np.int64)
        usable = np.isfinite(boxes).all(axis=1) & (boxes[:, 2:4] > boxes[:, :2]).all(axis=1)
        rows = np.flatnonzero(usable)
        boxes = np.clip(boxes[rows], -_LIMIT, _LIMIT)
        tracked = self.tracker.update(boxes, scores[rows], class_ids[rows], time_s)

        tracker_boxes = np.hstack([tracked.boxes[:, :2], tracked.boxes[:, 2:4] - tracked.boxes[:, :2]]).tolist()
        kept = set()
        for index, (row, new_id) in enumerate(zip(rows.tolist(), tracked.ids.tolist(), strict=True)):
            item, turns = mine[row], bool(tracked.turns[index])
            if new_id != UNCONFIRMED and turns:
                _turn(item.rect, tracked.measured[index])
            if new_id == UNCONFIRMED or not _clip(item.rect, frame, turns):
                continue
            kept.add(id(item))
            item.object_id = new_id
            item.tracker_confidence = _TRACKER_CONFIDENCE
            item.tracker_box = tuple(tracker_boxes[index])
            look = self._looks.get(new_id)
            if look is None:
                look = _Look(item.class_id, item.unique_component_id, copy.copy(item.rect), copy.copy(item.text))
                self._looks[new_id] = look
            look.label, look.words, look.turns = item.label, item.text.display_text, turns
            self._write_text(item)
        dropped = {id(item) for item in mine} - kept
        if dropped:
            frame.objects = [item for item in frame.objects if id(item) not in dropped]
        if len(self._looks) > len(kept):
            alive = self.tracker.alive()
            self._looks = {i: look for i, look in self._looks.items() if i in alive}

    def _predict(self, frame: FrameMeta, time_s: float) -> None:
        predicted = self.tracker.predict(time_s)
        for new_id, box in zip(predicted.ids.tolist(), predicted.boxes, strict=True):
            look = self._looks.get(new_id)
            if look is None:
                continue
            item = ObjectMeta(
                class_id=look.class_id,
                object_id=new_id,
                unique_component_id=look.unique_component_id,
                confidence=PREDICTED_CONFIDENCE,
                tracker_confidence=_TRACKER_CONFIDENCE,
                label=look.label,
                rect=copy.copy(look.rect),
                text=copy.copy(look.text),
                tracker_box=_left_top_size(box[:4]),
            )
            item.text.display_text = look.words
            _turn(item.rect, box)
            if _clip(item.rect, frame, look.turns):
                self._write_text(item)
                frame.objects.append(item)

    def _write_text(self, item: ObjectMeta) -> None:
        """The object's text, with its id, at the box of this frame; in DeepStream's style if it has none."""
        text = item.text
        if not self.display_id:
            return
        text.display_text = f"{text.display_text or item.label} {item.object_id}".lstrip()
        text.x_offset, text.y_offset = int(max(0, item.rect.left)), int(max(0, item.rect.top - _TEXT_RISE))
        if text.font_params.size == 0:
            text.font_params.name = osd.FontFamily.Serif  # type: ignore[assignment]  # read as a str
            text.font_params.size = _TEXT_SIZE
            text.font_params.color = _WHITE
            text.set_bg_clr, text.text_bg_clr = 1, _BLACK


def _corners(rect: osd.Rect) -> tuple[float, float, float, float]:
    return rect.left, rect.top, rect.left + rect.width, rect.top + rect.height


def _left_top_size(box: FloatArray) -> tuple[float, float, float, float]:
    left, top, right, bottom = (float(edge) for edge in box)
    return left, top, right - left, bottom - top


def _turn(rect: osd.Rect, box: FloatArray) -> None:
    """Write a turned box (xyxy, radians)."""
    rect.left, rect.top, rect.width, rect.height = _left_top_size(box[:4])
    rect.rotation_angle = degrees(float(box[4]))


def _clip(rect: osd.Rect, frame: FrameMeta, turns: bool) -> bool:
    """Clip the box to the frame; False if nothing of it is inside.

    A box that turns is left alone, since cutting it would move its centre.
    """
    left, top, right, bottom = _corners(rect)
    inside_left, inside_right = max(0.0, left), min(float(frame.pipeline_width), right)
    inside_top, inside_bottom = max(0.0, top), min(float(frame.pipeline_height), bottom)
    if inside_right <= inside_left or inside_bottom <= inside_top:
        return False
    if not turns:
        rect.left, rect.width = inside_left, inside_right - inside_left
        rect.top, rect.height = inside_top, inside_bottom - inside_top
    return True
