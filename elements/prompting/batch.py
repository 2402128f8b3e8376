"""Prompts and batches: who is asked about in a batch, and what is written into it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from elements.frames import BatchFrame
from elements.inference.crops import CropFrame, crop_region
from elements.metadata.edit import attach_json, classify, find_editor, find_jsons
from elements.metadata.frame_events import add_events, events_of
from elements.metadata.rotated import bounds
from elements.metadata.writer import UNTRACKED_OBJECT_ID
from elements.prompting.answers import Answer, AnswerBook, Question
from elements.prompting.asker import Asker
from elements.prompting.options import PromptOptions, filled
from elements.prompting.pictures import Picture, encoded, pixels_of
from elements.prompting.watch import Due, Seen, Watch

ANSWERS = "answers"
"""Name of the JSON metadata of objects: ``{attribute: answer}``."""
_SMALLEST = 4  # pixels; below, there is no picture to speak of


class BatchPrompts:
    """Asks about the frames of batches, and writes answers into batches. One thread.

    Args:
        options: of the stage.
        name: of the stage.
        api: the pyservicemaker module in use.
        asker: sends the questions.
        book: keeps the answers.
    """

    def __init__(self, options: PromptOptions, name: str, api: Any, asker: Asker, book: AnswerBook) -> None:
        self._options, self._name, self._api = options, name, api
        self._attribute = options.attribute or name
        self._asker, self._book, self._watch = asker, book, Watch(options)

    def ask(self, buffer: Any, frames: Sequence[BatchFrame]) -> None:
        """Find whom to ask about in a batch, and hand the questions over."""
        by_batch_id = {frame.batch_id: frame for frame in frames}
        for meta in self._api.Buffer(buffer).batch_meta.frame_items:
            frame = by_batch_id.get(meta.batch_id)
            if frame is None:
                continue
            seen, events = _seen(meta, frame), events_of(meta) if self._options.trigger.events else ()
            time_s, size = frame.pts / 1e9, (frame.width, frame.height)
            look = partial(self._look, frame, time_s)
            for due in self._watch.update(frame.source_id, time_s, size, seen, events, look):
                self._asker.give(self._question(due, frame, time_s))

    def write(self, buffer: Any) -> None:
        """Write into a batch what has come by now, and what is known of its tracks. Once per batch."""
        for question, answer in self._asker.results():
            if answer is None:
                self._watch.failed(question.source_id, question.track_id)
            else:
                self._book.put(answer)
        for meta in self._api.Buffer(buffer).batch_meta.frame_items:
            if find_editor(meta) is None:
                continue
            news = self._book.take_news(meta.source_id)
            add_events(meta, [answer.as_event(self._name, self._attribute) for answer in news])
            for item in meta.object_items if self._book.knows(meta.source_id) else ():
                answer = self._book.of_track(meta.source_id, int(item.object_id))
                if answer is not None:
                    self._write_one(item, answer)

    def forget(self, source_id: int) -> None:
        """Drop what is known of a source, which has ended."""
        self._watch.forget(source_id)
        self._book.forget(source_id)

    @property
    def left(self) -> int:
        """Answers that no frame has taken along, at the end."""
        return self._book.left + sum(answer is not None for _, answer in self._asker.results())

    def _write_one(self, item: Any, answer: Answer) -> None:
        classify(item, self._attribute, answer.label(self._attribute))
        known = find_jsons(item, (ANSWERS,)).get(ANSWERS, {})
        attach_json(item, ANSWERS, {**known, self._attribute: answer.as_json()})

    def _question(self, due: Due, frame: BatchFrame, time_s: float) -> Question:
        source = getattr(frame, "source", "") or str(frame.source_id)
        values = {"label": due.label, "source": source, "track_id": due.track_id}
        text = filled(self._options.text, values)
        return Question(
            frame.source_id, source, due.track_id, due.label, frame.frame_number, time_s, text, due.pictures
        )

    def _look(self, frame: BatchFrame, time_s: float, one: Seen | None) -> Picture | None:
        """A picture of an object with a margin around it, or of the whole frame."""
        if one is None:
            return encoded(pixels_of(frame), self._options.max_side, time_s)
        if not all(map(math.isfinite, one.box)):
            return None
        x1, y1, x2, y2 = one.box
        if one.angle:
            x1, y1, x2, y2 = bounds(np.array([one.box]), np.array([one.angle]))[0].tolist()
        cut = min(x1, y1) < 0 or x2 > frame.width or y2 > frame.height
        dx, dy = (x2 - x1) * self._options.margin, (y2 - y1) * self._options.margin
        region = crop_region((x1 - dx, y1 - dy, x2 + dx, y2 + dy), frame.width, frame.height)
        if min(region[2] - region[0], region[3] - region[1]) < _SMALLEST:
            return None
        return encoded(pixels_of(CropFrame(frame, region)), self._options.max_side, time_s, cut)


def _seen(frame_meta: Any, frame: BatchFrame) -> list[Seen]:
    """The objects of a frame, boxes in pixels of the source."""
    rows, boxes = [], []
    for item in frame_meta.object_items:
        rect = item.rect_params
        track_id = None if item.object_id == UNTRACKED_OBJECT_ID else int(item.object_id)
        rows.append((track_id, int(item.class_id), str(item.label), math.radians(rect.rotation_angle)))
        boxes.append((rect.left, rect.top, rect.left + rect.width, rect.top + rect.height))
    if not rows:
        return []
    in_source = frame.placement.to_source(np.array(boxes, np.float32)).tolist()
    return [
        Seen(track_id, class_id, label, (x1, y1, x2, y2), angle)
        for (track_id, class_id, label, angle), (x1, y1, x2, y2) in zip(rows, in_source, strict=True)
    ]
