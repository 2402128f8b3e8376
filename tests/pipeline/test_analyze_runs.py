"""Analyze stages in running pipelines: two sources with rules of their own, both kinds of rules, drawing, replay."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import jsonschema
import numpy as np
import pytest

from tests.clips import make_clip
from tests.gstorch_cli import Result, events, gstorch
from tests.onnx_models import finder, save

SCHEMA = json.loads((Path(__file__).parents[2] / "configs/schema/event.schema.json").read_text())
FRAMES = 40
# the middle of the red box is at 0.2 of the width and goes 3 pixels per frame to the right: over 0.352 in frame 33
# of a (640 wide), in frame 19 of b (360 wide)
DEFINITION = """
pipeline: counting
sources: [a.mp4, b.mp4]
mux: {padding: false}
stages:
  - infer: {model: m.onnx}
  - track:
  - analyze:
      lines: [{name: door, points: [[0.352, 0], [0.352, 1]], towards: [0.9, 0.5], sources: [a]}]
      zones: [{name: hall, polygon: [[0.352, 0], [1, 0], [1, 1], [0.352, 1]], sources: [b], classes: [red]}]
  - analyze: {name: deepstream, config: analytics.txt}
  - draw: {boxes: false, labels: false}
outputs:
  - events: {path: out.jsonl}
  - file: {path: "{source}-out.mp4", tile: off}
"""
ANALYTICS = """
[property]
enable=1
config-width=100
config-height=100
osd-mode=0
[line-crossing-stream-0]
enable=1
line-crossing-L1=30;50;40;50;35.2;0;35.2;100
[roi-filtering-stream-1]
enable=1
roi-RA=35.2;0;100;0;100;100;35.2;100
class-id=0
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("analyze")
    make_clip(folder / "a.mp4", 640, 360, FRAMES)
    make_clip(folder / "b.mp4", 360, 640, FRAMES)
    save(finder("yolov8", metadata={"names": str({0: "red", 1: "green", 2: "blue"})}), folder / "m.onnx")
    (folder / "analytics.txt").write_text(ANALYTICS)
    (folder / "p.yaml").write_text(DEFINITION)
    return folder


@pytest.fixture(scope="module")
def done(folder: Path) -> Result:
    result = gstorch("run", "p.yaml", "--json", cwd=folder)
    assert result.code == 0, result.stderr
    return result


def test_each_source_has_its_own_counts(done):
    assert done.summary["operators"]["analyze"] == {
        "a": {"lines": {"door": {"in": 1, "out": 0, "classes": {"red": {"in": 1, "out": 0}}}}},
        "b": {"zones": {"hall": {"count": 1, "classes": {"red": 1}, "entries": 1, "exits": 0}}},
    }


def test_what_happened_is_told_once_with_its_time(done, folder):
    told = [(line["source"], event) for line in events(folder / "out.jsonl") for event in line.get("events", [])]
    assert [(source, event["event"], event["label"]) for source, event in told] == [
        ("b", "entry", "red"),
        ("a", "crossing", "red"),
    ]
    assert told[0][1]["time_s"] == pytest.approx(19 / 25, abs=0.05)
    assert told[1][1]["time_s"] == pytest.approx(33 / 25, abs=0.05)


def test_lines_of_the_event_file_fit_the_schema(done, folder):
    for line in events(folder / "out.jsonl"):
        jsonschema.validate(line, SCHEMA)


def test_deepstreams_rules_give_the_same_kind_of_json(done, folder):
    last = {line["source"]: line["analytics"]["deepstream"] for line in events(folder / "out.jsonl")}
    assert last == {"a": {"lines": {"L1": {"in": 1}}}, "b": {"zones": {"RA": {"count": 1}}}}


def test_rules_are_drawn_into_the_video(done, folder):
    for source, place, colour in (("a", (300, 225), "green"), ("b", (600, 126), "yellow")):
        video = cv2.VideoCapture(str(folder / f"{source}-out.mp4"))
        ok, picture = video.read()
        assert ok
        row, column = place
        blue, green, red = np.mean(picture[row - 2 : row + 3, column - 1 : column + 2], axis=(0, 1))
        assert green > blue + 60
        assert (red > blue + 60) == (colour == "yellow")


def test_a_replay_finds_the_same(done, folder):
    text = DEFINITION.replace("out.jsonl", "again.jsonl")
    (folder / "again.yaml").write_text(text)
    again = gstorch("replay", "out.jsonl", "again.yaml", "--json", cwd=folder)
    assert again.code == 0, again.stderr
    assert again.summary["operators"]["analyze"] == done.summary["operators"]["analyze"]

    def found(name: str) -> list:
        return sorted(
            (line["source"], line["frame"], json.dumps(line.get("events")), json.dumps(line["analytics"]))
            for line in events(folder / name)
        )

    assert found("again.jsonl") == found("out.jsonl")


def test_a_wrong_configuration_of_deepstream_is_a_wrong_definition(folder):
    (folder / "wrong.txt").write_text(ANALYTICS.replace("class-id=0", "class-id=red"))
    (folder / "wrong.yaml").write_text(DEFINITION.replace("analytics.txt", "wrong.txt"))
    result = gstorch("run", "wrong.yaml", cwd=folder)
    assert result.code == 2
    said = f"{folder}/wrong.txt:13: class-id: 'red': class numbers separated by ';' are needed, or -1"
    assert result.stderr == f"wrong.yaml:11:41: stages[3].analyze.config: {said}\n"
    assert "Traceback" not in result.stderr
