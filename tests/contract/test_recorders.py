"""KITTI, MOT and COCO files, as other tools read them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from elements.base import ElementError
from pipelines.scripted import ScriptedFrame, batch_of, objects_of, use_portable_api

use_portable_api()

from pipelines.operators.recorders import Recorder  # noqa: E402 (needs the API)

BOXES = (10, 20, 30, 60), (100.5, 50.25, 140, 90)


def frames():
    """Two sources, three frames each; the middle one is empty."""
    found = objects_of(*BOXES, track_ids=[5, -1], class_ids=[0, 2], scores=[0.75, -0.1])
    return [
        ScriptedFrame(found, ["person", "traffic light"], source, n) if n != 1 else ScriptedFrame((), (), source, n)
        for n in range(3)
        for source in range(2)
    ]


def record(fmt, path, failures=None, mux=(640, 640)):
    report = lambda text, _trace: (failures if failures is not None else []).append(text)  # noqa: E731
    recorder = Recorder(str(path), fmt, ["door", "yard"], True, mux, report)
    for n in range(3):
        recorder.handle_metadata(batch_of(frames()[2 * n : 2 * n + 2], mux, padding=True))
    recorder.close()


def test_kitti(tmp_path):
    record("kitti", tmp_path / "labels")
    names = sorted(file.name for file in (tmp_path / "labels").iterdir())
    assert names == [f"00_{source:03d}_{frame:06d}.txt" for source in range(2) for frame in range(3)]
    assert (tmp_path / "labels" / "00_001_000001.txt").read_text() == ""
    first, second = (tmp_path / "labels" / "00_001_000002.txt").read_text().splitlines()
    assert first == "person 0.0 0 0.0 10.00 20.00 30.00 60.00 0.0 0.0 0.0 0.0 0.0 0.0 0.0 0.750000"
    assert second.split()[0] == "traffic_light"
    assert len(first.split()) == 16  # deepstream-app's 15 columns and the confidence


def test_mot(tmp_path):
    record("mot", tmp_path / "{source}.txt")
    lines = [[float(v) for v in line.split(",")] for line in (tmp_path / "yard.txt").read_text().splitlines()]
    assert [line[:2] for line in lines] == [[1, 5], [1, -1], [3, 5], [3, -1]]
    np.testing.assert_allclose(lines[0][2:6], [10, 20, 20, 40], atol=0.01)
    np.testing.assert_allclose(lines[1][2:6], [100.5, 50.25, 39.5, 39.75], atol=0.01)
    assert [line[6] for line in lines] == [0.75, 0, 0.75, 0]
    assert (tmp_path / "door.txt").read_text() == (tmp_path / "yard.txt").read_text()


def test_coco(tmp_path):
    record("coco", tmp_path / "{source}.json")
    results = json.loads((tmp_path / "door.json").read_text())
    assert [(r["image_id"], r["category_id"], r["score"]) for r in results] == [
        (0, 0, 0.75), (0, 2, 0.0), (2, 0, 0.75), (2, 2, 0.0),
    ]  # fmt: skip
    np.testing.assert_allclose(results[0]["bbox"], [10, 20, 20, 40], atol=0.01)
    assert results[0]["track_id"] == 5
    assert "track_id" not in results[1]


def test_coco_without_any_object(tmp_path):
    recorder = Recorder(str(tmp_path / "a.json"), "coco", ["door"], True, None, lambda *_: None)
    recorder.close()
    assert json.loads((tmp_path / "a.json").read_text()) == []


def test_what_cannot_be_written_is_named(tmp_path):
    with pytest.raises(ElementError, match=r"cannot write '.*nowhere/door\.txt': No such file"):
        Recorder(str(tmp_path / "nowhere" / "{source}.txt"), "mot", ["door"], True, None, lambda *_: None)


def test_an_array_that_cannot_be_closed_is_told():
    recorder = Recorder("/dev/full", "coco", ["door"], True, None, lambda _text, _trace: None)
    with pytest.raises(ElementError, match="cannot write '/dev/full': No space left on device"):
        recorder.close()
