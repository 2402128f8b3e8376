"""Prompts on both kinds of metadata, through a mux of another size: who is asked about, and what is written."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest

from elements.inference.frame import ArrayFrame
from elements.metadata.edit import attach_json, read_json
from elements.metadata.placement import Placement
from elements.prompting.answers import Answer, AnswerBook
from elements.prompting.batch import ANSWERS, BatchPrompts
from tests.contract.test_event_objects import BOX, MUX, SOURCE, event, found, runtime, writer, written  # noqa: F401
from tests.prompts import options

LEFT_OUT = (300, 10, 340, 60)


class Frame(ArrayFrame):
    """The one frame of a `runtime`, red where `BOX` is."""

    batch_id = pad_index = 0
    placement = Placement.padded(SOURCE, MUX)


class Asked:
    """In place of the asker: notes questions, and has the answers that a test puts."""

    def __init__(self) -> None:
        self.questions: list[Any] = []
        self.came: list[Any] = []

    def give(self, question: Any) -> None:
        self.questions.append(question)

    def results(self) -> list[Any]:
        came, self.came = self.came, []
        return came


@pytest.fixture
def picture() -> Frame:
    pixels = np.zeros((SOURCE[1], SOURCE[0], 3), np.uint8)
    x1, y1, x2, y2 = map(round, BOX)
    pixels[y1:y2, x1:x2] = (255, 0, 0)
    return Frame(pixels, frame_number=1, pts=40_000_000, source="only")


def prompts(made: Any, asker: Asked, **values: Any) -> BatchPrompts:
    api = SimpleNamespace(Buffer=lambda _: SimpleNamespace(batch_meta=made.handle()))
    return BatchPrompts(
        options(**{"text": "{label} {track_id} of {source}?", **values}), "wears", api, asker, AnswerBook()
    )


def test_from_the_question_to_the_answer_in_the_event(runtime, writer, picture):  # noqa: F811
    written(runtime, found(BOX, LEFT_OUT, track_ids=np.array([7, -1])))
    asker = Asked()
    stage = prompts(runtime, asker, margin=0)
    stage.ask(None, [picture])
    (question,) = asker.questions
    assert (question.text, question.track_id, question.label) == ("car 7 of only?", 7, "car")
    shown = cv2.imdecode(np.frombuffer(question.pictures[0].jpeg, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]
    assert shown.shape == (101, 122, 3)  # y from 40.6 to 140.2 and x from 100.3 to 221.7 touch so many pixels
    assert abs(shown[2:-2, 2:-2].reshape(-1, 3).mean(0) - (255, 0, 0)).max() < 4

    asker.came = [(question, Answer(question, "a red coat", None, "vl", 0.5, 90))]
    stage.write(None)
    line = event(runtime, writer)
    tracked, untracked = line["objects"]
    assert tracked["attributes"]["wears"]["label"] == "a red coat"
    assert "attributes" not in untracked
    (told,) = line["events"]
    assert (told["event"], told["track_id"], told["text"], told["frame"]) == ("answer", 7, "a red coat", 1)
    kept = [read_json(item, ANSWERS) for frame in runtime.handle().frame_items for item in frame.object_items]
    assert [found and found["wears"]["tokens"] for found in kept] == [None, 90]


def test_events_of_stages_before_name_whom_to_ask_about(runtime, picture):  # noqa: F811
    written(runtime, found(BOX, LEFT_OUT, track_ids=np.array([7, 8])))
    for frame in runtime.handle().frame_items:
        attach_json(frame, "events", [{"event": "entry", "track_id": 8}, {"event": "exit", "track_id": 7}])
    asker = Asked()
    prompts(runtime, asker, trigger={"events": ["entry"]}).ask(None, [picture])
    assert [question.track_id for question in asker.questions] == [8]
