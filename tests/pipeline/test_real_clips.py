"""The real clips and model of the data folder, with the truth that people counted by eye."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gstorch_cli import Result, count_frames, events, frame_times, gstorch

ONE_BY_ONE = [(6.1, 19.6), (22.8, 44.8), (50.2, 69.8), (74.5, 86.7), (92.2, 119.8), (123.5, 135.9)]
PERSON = "person"


def presence(lines: list[dict], gap_s: float = 1.0, least_s: float = 1.0) -> list[tuple[float, float]]:
    """Intervals of stream time in which a person is tracked; gaps below ``gap_s`` are closed, blips dropped."""
    intervals: list[list[float]] = []
    for line in lines:
        if any(o["label"] == PERSON for o in line["objects"]):
            t = line["stream_time_s"]
            if intervals and t - intervals[-1][1] <= gap_s:
                intervals[-1][1] = t
            else:
                intervals.append([t, t])
    return [(a, b) for a, b in intervals if b - a >= least_s]


@pytest.fixture(scope="module")
def yolox(shared_data: Path) -> Path:
    return shared_data / "models" / "yolox_nano_416.onnx"


@pytest.fixture(scope="module")
def videos(shared_data: Path) -> Path:
    return shared_data / "videos"


@pytest.fixture(scope="module")
def visits(videos: Path, yolox: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """The definition ``visits.yaml`` and its run, with ``events.jsonl`` beside it.

    Who comes to the table crosses the line before it; who leaves passes the zone at the right; ``view`` is all.
    """
    definition = tmp_path_factory.mktemp("visits") / "visits.yaml"
    definition.write_text(
        f"""
pipeline: visits
sources: [{{name: room, uri: {videos / "one-by-one-person-detection.mp4"}}}]
stages:
  - infer: {{model: {yolox}, confidence: 0.35, classes: [person], rectangular: true}}
  - track:
  - analyze:
      anchor: center
      lines: [{{name: table, points: [[0.3, 0.6], [0.8, 0.6]], towards: [0.5, 0.3]}}]
      zones:
        - {{name: exit, polygon: [[0.85, 0], [1, 0], [1, 1], [0.85, 1]]}}
        - {{name: view, polygon: [[0, 0], [1, 0], [1, 1], [0, 1]]}}
outputs: [events: {{path: events.jsonl}}]
"""
    )
    result = gstorch("run", definition, "--json", "-q")
    assert result.code == 0, result.stderr
    return definition, result


def test_one_by_one_gives_six_visits(visits):
    lines = events(visits[0].parent / "events.jsonl")
    assert [e["frame"] for e in lines] == list(range(1394))
    found = presence(lines)
    assert len(found) == 6
    for (start, end), (true_start, true_end) in zip(found, ONE_BY_ONE, strict=True):
        assert start == pytest.approx(true_start, abs=0.5)
        assert end == pytest.approx(true_end, abs=0.5)
    people = {o["track_id"] for e in lines for o in e["objects"] if o["label"] == PERSON}
    assert 6 <= len(people) <= 8


def test_store_aisle_keeps_three_identities(videos, yolox, tmp_path):
    out = tmp_path / "events.jsonl"
    result = gstorch("run", videos / "store-aisle_from_preview_gif.mp4", "--model", yolox, "--events", out, "-q")
    assert result.code == 0, result.stderr
    people = {o["track_id"] for e in events(out) for o in e["objects"] if o["label"] == PERSON}
    assert len(people) == 3


@pytest.mark.parametrize(
    ("name", "size", "frames"),
    [
        ("rot90_display_matrix.mp4", (640, 360), 100),
        ("odd_427x241_vp9.webm", (427, 241), 100),
        ("hevc_main10.mp4", None, 100),
        ("vfr_irregular.mp4", None, 46),
    ],
)
def test_odd_files_run_right(videos, yolox, tmp_path, name, size, frames):
    out, video = tmp_path / "events.jsonl", tmp_path / "out.mp4"
    clip = videos / name
    result = gstorch("run", clip, "--model", yolox, "--events", out, "--output", video, "--json", "-q")
    assert result.code == 0, result.stderr
    lines = events(out)
    assert len(lines) == frames == count_frames(clip)
    if size:
        assert {(e["width"], e["height"]) for e in lines} == {size}
    times = frame_times(clip)
    assert [e["stream_time_s"] for e in lines] == pytest.approx([t - times[0] for t in times], abs=0.002)
    assert count_frames(video) == frames
    assert any(o["label"] == PERSON for e in lines for o in e["objects"])


@pytest.mark.parametrize(
    ("name", "reason"), [("truncated_no_moov.mp4", "cannot be read"), ("audio_only.mp4", "no video stream")]
)
def test_bad_files_fail_fast_and_say_why(videos, yolox, tmp_path, name, reason):
    outputs = ("--events", tmp_path / "e.jsonl", "--output", tmp_path / "o.mp4")
    result = gstorch("run", videos / name, "--model", yolox, *outputs)
    assert result.code == 1
    assert name in result.stderr
    assert reason in result.stderr


def test_one_good_and_one_bad_file_is_partial(videos, yolox, tmp_path):
    good, bad = videos / "hevc_main10.mp4", videos / "truncated_no_moov.mp4"
    out = tmp_path / "events.jsonl"
    result = gstorch("run", bad, good, "--model", yolox, "--events", out, "--json", "-q")
    assert result.code == 3
    states = {s["source"]: s["state"] for s in result.summary["sources"]}
    assert states == {"truncated_no_moov": "failed", "hevc_main10": "finished"}
    assert len(events(out, "hevc_main10")) == 100
    assert {e["source_id"] for e in events(out)} == {1}


def test_line_and_zones_count_six_visits_with_their_dwell_times(visits):
    definition, result = visits
    out = definition.parent / "events.jsonl"
    counts = result.summary["operators"]["analyze"]["room"]
    assert (counts["lines"]["table"]["in"], counts["lines"]["table"]["out"]) == (6, 0)
    for zone in ("exit", "view"):
        assert (counts["zones"][zone]["entries"], counts["zones"][zone]["exits"]) == (6, 6)
    told = [event for line in events(out) for event in line.get("events", [])]
    visits = [event for event in told if event["event"] == "exit" and event["zone"] == "view"]
    assert len(visits) == 6
    for visit, (start, end) in zip(visits, ONE_BY_ONE, strict=True):
        assert visit["dwell_s"] == pytest.approx(end - start, abs=0.7)
        assert visit["entered_s"] == pytest.approx(start, abs=0.7)
        assert visit["time_s"] == pytest.approx(end, abs=0.7)
    again = definition.with_name("again.yaml")
    again.write_text(definition.read_text().replace("events.jsonl", "again.jsonl"))
    replayed = gstorch("replay", out, again, "--json", "-q")
    assert replayed.code == 0, replayed.stderr
    assert replayed.summary["operators"]["analyze"]["room"] == counts
    assert [e for line in events(definition.with_name("again.jsonl")) for e in line.get("events", [])] == told
