"""Masks, key points, angles, attributes and embeddings from an own model to the event file and the video."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import jsonschema
import numpy as np
import pytest

from elements.metadata.rle import decode
from tests.clips import make_clip
from tests.gstorch_cli import events, gstorch
from tests.rich_model import ANGLE, truth_of, turned

SCHEMA = json.loads((Path(__file__).parents[2] / "configs/schema/event.schema.json").read_text())
SIZE = (500, 300)
FRAMES = 12
CONFIRMED = 5  # tracks are, from this frame on

DEFINITION = """
pipeline: rich
sources: [clip.mp4]
mux: {width: 640, height: 640}
stages:
  - infer: {model: "tests.rich_model:Rich"}
  - track: {}
  - draw: {labels: false, line_width: 2}
outputs:
  - events: {path: rich.jsonl, embeddings: true}
  - file: {path: out.mp4}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a finished run."""
    folder = tmp_path_factory.mktemp("rich")
    make_clip(folder / "clip.mp4", *SIZE, FRAMES)
    (folder / "rich.yaml").write_text(DEFINITION)
    result = gstorch("run", "rich.yaml", "-q", cwd=folder)
    assert result.code == 0, result.stderr
    return folder


@pytest.fixture
def lines(folder: Path) -> list[dict[str, Any]]:
    found = events(folder / "rich.jsonl")
    assert [line["frame"] for line in found] == list(range(FRAMES))
    return found[CONFIRMED:]


def test_events_are_valid(lines):
    for line in lines:
        jsonschema.validate(line, SCHEMA)
        assert [entry["class_id"] for entry in line["objects"]] == [0, 1]
        assert [entry["track_id"] for entry in line["objects"]] == [1, 2]


def test_places_are_those_of_the_model(lines):
    """Through a mux of another size with padding: within half a pixel."""
    for line in lines:
        truth = truth_of(*SIZE, line["frame"])
        for row, entry in enumerate(line["objects"]):
            assert entry["bbox"] == pytest.approx(truth.boxes[row], abs=0.5)
            assert np.array(entry["keypoints"]) == pytest.approx(truth.keypoints[row], abs=0.5)
        upright, tilted = line["objects"]
        assert "angle" not in upright
        assert tilted["angle"] == pytest.approx(ANGLE, abs=0.01)
        x1, y1, x2, _ = truth.boxes[1]
        assert tilted["corners"][0] == pytest.approx(turned(truth.boxes[1], (x1, y1)), abs=0.5)
        assert tilted["corners"][1] == pytest.approx(turned(truth.boxes[1], (x2, y1)), abs=0.5)


def test_masks_are_those_of_the_model(lines):
    for line in lines:
        for entry, mask in zip(line["objects"], truth_of(*SIZE, line["frame"]).full_masks(*SIZE), strict=True):
            found = decode(entry["mask"])
            assert (found & mask).sum() / (found | mask).sum() > 0.97


def test_the_rest(lines):
    red, green = lines[-1]["objects"]
    assert red["attributes"] == {"colour": {"label": "red", "class_id": 0, "probability": 1}}
    assert green["attributes"] == {"kind": {"label": "van", "class_id": 2, "probability": 0.5}}
    assert (red["embedding"], green["embedding"]) == ([0.6, 0.8], [1, 0])


def test_the_video_shows_them(folder):
    """Key points in the colour of the class, masks as a tint half of it, over the clip's own red."""
    clip, video = (cv2.VideoCapture(str(folder / name)) for name in ("clip.mp4", "out.mp4"))
    assert (video.get(cv2.CAP_PROP_FRAME_WIDTH), video.get(cv2.CAP_PROP_FRAME_HEIGHT)) == SIZE
    for number in range(FRAMES):
        original, drawn = (capture.read()[1][..., ::-1].astype(int) for capture in (clip, video))
        if number < CONFIRMED:
            continue
        x1, y1, x2, y2 = truth_of(*SIZE, number).boxes[0]
        colour = np.array([0, 191, 255])

        def pixel(picture: np.ndarray, x: float, y: float) -> np.ndarray:
            return picture[int(y) - 1 : int(y) + 2, int(x) - 1 : int(x) + 2].mean(axis=(0, 1))

        middle = (x1 + x2) / 2, (y1 + y2) / 2
        assert np.abs(pixel(drawn, *middle) - colour).max() < 40  # the nose
        tinted = middle[0], y1 + (y2 - y1) * 0.8
        half = (pixel(original, *tinted) + colour) / 2
        assert np.abs(pixel(drawn, *tinted) - half).max() < 30
        corner = x1 + 6, y2 - 6  # inside of the box, outside of the ellipse
        assert np.abs(pixel(drawn, *corner) - pixel(original, *corner)).max() < 30
