"""Recorded events as frames, and what is no event."""

from __future__ import annotations

import json

import pytest

from pipelines.recording import ReplayError, frames_of


def event(**changes):
    thing = {"bbox": [1, 2, 3, 4], "class_id": 0, "label": "person", "confidence": 0.5, "track_id": 3}
    known = {
        "source": "door", "frame": 1, "stream_time_s": 0.1, "time_utc": None, "width": 640, "height": 360,
    }  # fmt: skip
    return known | {key: changes.pop(key) for key in list(changes) if key in known} | {"objects": [thing | changes]}


def frames(path, *events):
    path.write_text("\n".join(json.dumps(one) for one in events))
    return list(frames_of(path, ["door"]))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"stream_time_s": float("nan")}, "stream_time_s is not a number from 0 to 1e+09"),
        ({"stream_time_s": float("inf")}, "stream_time_s is not a number"),
        ({"width": 0}, "width is not a number from 1 to 1e+06"),
        ({"frame": -1}, "frame is not a number"),
        ({"class_id": -1}, "class_id is not a number from 0"),
        ({"class_id": 10**12}, "class_id is not a number"),
        ({"bbox": [1, 2]}, "bbox is not [x1, y1, x2, y2]"),
        ({"bbox": [0, 0, 1e300, 1]}, "bbox is not a number"),
        ({"label": "\ud800"}, "surrogates not allowed"),
        ({"confidence": "high"}, "confidence is not a number"),
    ],
)
def test_values_that_no_metadata_can_hold(tmp_path, change, problem):
    with pytest.raises(ReplayError) as error:
        frames(tmp_path / "in.jsonl", event(), event(**change))
    assert "in.jsonl:2: is not a line of an event file: " in str(error.value)
    assert problem in str(error.value)


def test_nesting_without_end(tmp_path):
    (tmp_path / "in.jsonl").write_text("[" * 200_000)
    with pytest.raises(ReplayError, match=r"in\.jsonl:1: is not a line of an event file"):
        list(frames_of(tmp_path / "in.jsonl", ["door"]))


def test_the_untracked_id_of_deepstream_is_no_track(tmp_path):
    (frame,) = frames(tmp_path / "in.jsonl", event(track_id=2**64 - 1))
    assert frame.objects.track_ids.tolist() == [-1]


def test_a_byte_order_mark_is_no_event(tmp_path):
    (tmp_path / "in.jsonl").write_text(json.dumps(event()), encoding="utf-8-sig")
    assert len(list(frames_of(tmp_path / "in.jsonl", ["door"]))) == 1


def test_a_compressed_file_is_named_as_such(tmp_path):
    (tmp_path / "in.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00\x00\x00\x00\x00")
    with pytest.raises(ReplayError, match=r"is not UTF-8 text: .*unpack a compressed one first"):
        list(frames_of(tmp_path / "in.jsonl.gz", ["door"]))
