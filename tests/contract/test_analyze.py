"""Operators of the analyze stage on scripted frames: JSON on frames and objects, events, drawings."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from elements.analytics.rules import Line, Rules, Settings, Zone
from pipelines.scripted import ScriptedFrame, batch_of, objects_of, use_portable_api

use_portable_api()

from elements.metadata.edit import attach_json  # noqa: E402
from elements.portable.meta import UserMeta  # noqa: E402
from pipelines.operators.analyze import Analyze  # noqa: E402
from pipelines.operators.drawn_rules import DrawRules  # noqa: E402
from pipelines.operators.frame_event import EventMaker  # noqa: E402
from pipelines.operators.nvds_analytics import CopyAnalytics  # noqa: E402
from tests.contract.nvds_double.native import SKIP  # noqa: E402
from tests.contract.test_event_objects import MUX, DeepStream, Portable, found, written  # noqa: E402

SCHEMA = json.loads((Path(__file__).parents[2] / "configs/schema/event.schema.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)
RIGHT = Zone("right", ((0.5, 0), (1, 0), (1, 1), (0.5, 1)), crowded_at=1)
DOOR = Line("door", (0.5, 0), (0.5, 1), towards=(0.9, 0.5))
LEFT_BOX, RIGHT_BOX = (100, 100, 140, 200), (400, 100, 440, 200)  # of a picture of 640x360


def frame(number: int, *boxes: tuple, source_id: int = 0, **columns) -> ScriptedFrame:
    columns.setdefault("track_ids", range(1, 1 + len(boxes)))
    objects = objects_of(*boxes, **columns)
    return ScriptedFrame(objects, ["person"] * len(boxes), source_id, number, number * 0.1, size=(640, 360))


class Run:
    """Runs the operator and keeps the lines of the event file."""

    def __init__(self, rules: dict[int, Rules], names=("a", "b"), mux=None, padding=False, settings=None) -> None:
        self.failures: list[str] = []
        self.mux, self.padding = mux, padding
        self.operator = Analyze("analyze", rules, settings or Settings(), names, padding, mux, self._report)
        self.maker = EventMaker("p", names, padding, mux)

    def _report(self, text: str, _trace: str) -> None:
        self.failures.append(text)

    def __call__(self, *frames: ScriptedFrame) -> list[dict]:
        batch = batch_of(frames, self.mux, self.padding)
        self.operator.handle_metadata(batch)
        assert self.failures == []
        lines = json.loads(json.dumps([self.maker.event_of(meta) for meta in batch.frame_items], allow_nan=False))
        for line in lines:
            VALIDATOR.validate(line)
        return lines


@pytest.mark.parametrize(("mux", "padding"), [(None, False), ((640, 640), True), ((1280, 400), False)])
def test_frames_objects_and_events_whatever_the_mux(mux, padding):
    run = Run({0: Rules((RIGHT,), (DOOR,))}, mux=mux, padding=padding)
    lines = [run(frame(i, LEFT_BOX if i < 3 else RIGHT_BOX, (0, 0, 9, 9), track_ids=[7, -1]))[0] for i in range(6)]
    line = lines[5]
    assert line["analytics"] == {
        "analyze": {
            "zones": {"right": {"count": 1, "classes": {"person": 1}, "entries": 1, "exits": 0, "crowded": True}},
            "lines": {"door": {"in": 1, "out": 0, "classes": {"person": {"in": 1, "out": 0}}}},
        }
    }
    who = {"stage": "analyze", "track_id": 7, "label": "person", "time_s": 0.3}
    assert line["events"] == [
        {"event": "crossing", "line": "door", "direction": "in", **who},
        {"event": "entry", "zone": "right", **who},
        {"event": "overcrowding-start", "stage": "analyze", "zone": "right", "count": 1, "time_s": 0.3},
    ]
    tracked, untracked = line["objects"]
    assert tracked["analytics"] == {
        "analyze": {
            "zones": ["right"],
            "dwell_s": {"right": 0.2},
            "crossed": [{"line": "door", "direction": "in"}],
        }
    }
    assert "analytics" not in untracked
    assert "events" not in lines[4]


@pytest.mark.parametrize(
    "runtime", [Portable, pytest.param(DeepStream, marks=pytest.mark.skipif(bool(SKIP), reason=SKIP))]
)
def test_on_both_kinds_of_metadata(runtime):
    """A tracked object, a padded frame: what the operator attaches through each runtime's API."""
    made, failures = runtime(), []
    written(made, found((300, 40, 340, 140), track_ids=np.array([4])))
    rules = {0: Rules((RIGHT,), (DOOR,))}
    report = lambda text, trace: failures.append(text + trace)  # noqa: E731
    Analyze("analyze", rules, Settings("bottom", 1, 1), ["only"], True, MUX, report).handle_metadata(made.handle())
    assert failures == []
    for meta in made.handle().frame_items:
        line = EventMaker("p", ["only"], True, MUX).event_of(meta)
    VALIDATOR.validate(line)
    assert line["analytics"]["analyze"]["zones"]["right"]["classes"] == {"car": 1}
    assert [e["event"] for e in line["events"]] == ["entry", "overcrowding-start"]
    assert line["objects"][0]["analytics"] == {"analyze": {"zones": ["right"], "dwell_s": {"right": 0.0}}}


def test_sources_have_their_own_rules_tracks_and_counts():
    """The same track ids in both sources, in one batch; only 'a' has the line, only 'b' the zone."""
    run = Run({0: Rules(lines=(DOOR,)), 1: Rules(zones=(RIGHT,))})
    for i in range(6):
        boxes = LEFT_BOX if i < 3 else RIGHT_BOX
        a, b = run(frame(i, boxes), frame(i, RIGHT_BOX, source_id=1))
        assert set(a["analytics"]["analyze"]) == {"lines"}
        assert set(b["analytics"]["analyze"]) == {"zones"}
        assert {e["event"] for e in a.get("events", [])} <= {"crossing"}
        assert {e["event"] for e in b.get("events", [])} <= {"entry", "overcrowding-start"}
    assert run.operator.stats == {
        "a": {"lines": {"door": {"in": 1, "out": 0, "classes": {"person": {"in": 1, "out": 0}}}}},
        "b": {
            "zones": {"right": {"count": 1, "classes": {"person": 1}, "entries": 1, "exits": 0, "crowded": True}}
        },
    }  # fmt: skip


def test_one_source_crossing_again_and_again_leaves_the_other_alone():
    run = Run({0: Rules(lines=(DOOR,)), 1: Rules(lines=(DOOR,))})
    for i in range(30):
        _, b = run(frame(i, LEFT_BOX if i % 6 < 3 else RIGHT_BOX), frame(i, LEFT_BOX, source_id=1))
        assert "events" not in b
    assert run.operator.stats["a"]["lines"]["door"]["in"] == 5
    assert run.operator.stats["b"]["lines"]["door"]["in"] == 0


def test_a_source_without_rules_has_no_analytics():
    (line,) = Run({1: Rules(zones=(RIGHT,))})(frame(0, RIGHT_BOX))
    assert "analytics" not in line


def test_a_second_stage_and_events_of_others_stay():
    run = Run({0: Rules(zones=(RIGHT,))}, settings=Settings(confirm_frames=1, hold_frames=1))
    batch = batch_of([frame(0, RIGHT_BOX)])
    for meta in batch.frame_items:
        attach_json(meta, "analytics", {"other": {"lines": {}}})
        attach_json(meta, "events", [{"event": "crowded"}])
        for item in meta.object_items:
            attach_json(item, "analytics", {"other": {"zones": ["x"]}})
    run.operator.handle_metadata(batch)
    for meta in batch.frame_items:
        line = run.maker.event_of(meta)
    assert list(line["analytics"]) == ["other", "analyze"]
    assert [e["event"] for e in line["events"]] == ["crowded", "entry", "overcrowding-start"]
    assert list(line["objects"][0]["analytics"]) == ["other", "analyze"]


def test_rotated_objects_stand_where_their_outline_is_lowest():
    low = Zone("low", ((0, 0.5), (1, 0.5), (1, 1), (0, 1)))
    run = Run({0: Rules(zones=(low,))}, settings=Settings(confirm_frames=1, hold_frames=1))
    flat = (300, 150, 380, 160)  # 80 wide, ends above the middle (180); upright it ends at 195
    upright = {"angles": np.array([math.pi / 2], np.float32)}
    assert run(frame(0, flat))[0]["analytics"]["analyze"]["zones"]["low"]["count"] == 0
    assert run(frame(1, flat, **upright))[0]["analytics"]["analyze"]["zones"]["low"]["count"] == 1


def test_zones_and_lines_are_drawn_with_their_counts():
    rules = {0: Rules((RIGHT,), (DOOR,))}
    run = Run(rules, settings=Settings(confirm_frames=1, hold_frames=1))
    drawing = DrawRules({"analyze": rules}, False, None, 12, 3, run._report)
    batch = batch_of([frame(0, RIGHT_BOX), frame(0, RIGHT_BOX, source_id=1)])
    run.operator.handle_metadata(batch)
    drawing.handle_metadata(batch)
    assert run.failures == []
    drawn, plain = batch._meta.frames
    (display,) = drawn.displays
    assert [text.display_text for text in display.texts] == ["right 1", "door in 0 out 0"]
    assert len(display.lines) == 4 + 2
    outline = {(line.x1, line.y1) for line in display.lines[:4]}
    assert outline == {(320, 0), (639, 0), (639, 359), (320, 359)}
    assert (display.lines[0].color.r, display.lines[0].color.g) == (1.0, pytest.approx(0.4))  # overcrowded
    assert plain.displays == []


def test_results_of_nvdsanalytics_become_the_same_json():
    from elements.analytics.nvds_engine import FrameInfo, ObjectInfo

    batch = batch_of([frame(0, RIGHT_BOX)])
    (meta,) = batch._meta.frames
    meta.user.append(UserMeta(32, FrameInfo({"OC": True}, {"RA": 1, "OC": 2}, {"L1": 0}, {"L1": 4}, 17, {0: 1})))
    meta.objects[0].user.append(UserMeta(33, ObjectInfo(["RA"], ["OC"], ["L1"], "East", 17, " STOPPED ")))
    failures: list[str] = []
    CopyAnalytics("analyze", lambda text, _trace: failures.append(text)).handle_metadata(batch)
    assert failures == []
    for seen in batch.frame_items:
        line = EventMaker("p", ["a"], False).event_of(seen)
    VALIDATOR.validate(line)
    assert line["analytics"]["analyze"] == {
        "zones": {"RA": {"count": 1}, "OC": {"count": 2, "crowded": True}},
        "lines": {"L1": {"in": 4}},
    }
    assert line["objects"][0]["analytics"]["analyze"] == {
        "zones": ["RA", "OC"],
        "crossed": [{"line": "L1", "direction": "in"}],
        "directions": ["East"],
        "status": "STOPPED",
    }
