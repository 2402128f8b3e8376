"""The program on generated clips with known truth."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from tests.clips import drifting, make_clip
from tests.gstorch_cli import (
    command,
    count_frames,
    environment,
    events,
    gstorch,
    gstorch_interrupted,
    line_count,
    video_size,
)
from tests.onnx_models import finder, save
from tests.waiting import SOON_S, wait_for

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    return save(finder("yolov8"), tmp_path_factory.mktemp("model") / "finder.onnx")


def boxes_by_frame(lines: list[dict]) -> dict[int, dict[int, list[float]]]:
    return {e["frame"]: {o["class_id"]: o["bbox"] for o in e["objects"]} for e in lines}


def worst_error(lines: list[dict], truth, first: int = 5) -> float:
    """Largest distance of a box edge from the truth, pixels, over frames from ``first`` on (tracks are confirmed)."""
    worst = 0.0
    for n, found in boxes_by_frame(lines).items():
        if n < first:
            continue
        for class_id, box in truth(n).items():
            worst = max(worst, float(np.abs(np.array(found[class_id]) - box).max()))
    return worst


@pytest.mark.parametrize("size", [(1920, 1080), (720, 1280), (998, 483), (641, 359)])
@pytest.mark.parametrize("mux", [(), ("--set", "mux.width=1280", "--set", "mux.height=720")])
def test_event_boxes_are_within_a_pixel_of_the_truth(tmp_path, model, size, mux):
    clip, out = tmp_path / "clip.mp4", tmp_path / "events.jsonl"
    truth = make_clip(clip, *size, frames=12)
    result = gstorch("run", clip, "--model", model, "--events", out, "--json", "-q", *mux)
    assert result.code == 0, result.stderr
    lines = events(out)
    assert len(lines) == 12
    assert (lines[0]["width"], lines[0]["height"]) == size
    assert worst_error(lines, truth) < 1.0


def test_sources_together_give_the_boxes_of_each_alone(tmp_path, model):
    sizes = {"a": (640, 360), "b": (360, 640), "c": (1280, 720), "d": (500, 500)}
    clips = {name: tmp_path / f"{name}.mp4" for name in sizes}
    for seed, (name, size) in enumerate(sizes.items()):
        make_clip(clips[name], *size, frames=20, boxes=drifting(*size, seed))
    together = tmp_path / "together.jsonl"
    assert gstorch("run", *clips.values(), "--model", model, "--events", together, "-q").code == 0
    for name, clip in clips.items():
        alone = tmp_path / f"{name}.jsonl"
        assert gstorch("run", clip, "--model", model, "--events", alone, "-q").code == 0
        a, b = boxes_by_frame(events(alone)), boxes_by_frame(events(together, name))
        assert a.keys() == b.keys() == set(range(20))
        for n in a:
            assert a[n].keys() == b[n].keys()
            for class_id in a[n]:
                assert a[n][class_id] == pytest.approx(b[n][class_id], abs=0.5)


@pytest.mark.parametrize("count", [1, 4, 8])
def test_no_frame_is_lost(tmp_path, model, count):
    lengths = {f"clip{i}": 15 + 9 * i for i in range(count)}
    for name, frames in lengths.items():
        make_clip(tmp_path / f"{name}.mp4", 320, 240, frames)
    out, video = tmp_path / "events.jsonl", tmp_path / "out.mp4"
    clips = [tmp_path / f"{name}.mp4" for name in lengths]
    result = gstorch("run", *clips, "--model", model, "--events", out, "--output", video, "--json", "-q")
    assert result.code == 0, result.stderr
    for name, frames in lengths.items():
        assert [e["frame"] for e in events(out, name)] == list(range(frames))
        assert result.source(name)["frames"] == frames
    assert count_frames(video) >= max(lengths.values())


def test_events_are_valid_by_their_schema(tmp_path, model):
    clip, out = tmp_path / "clip.mp4", tmp_path / "events.jsonl"
    make_clip(clip, 320, 240, 10)
    assert gstorch("run", clip, "--model", model, "--events", out, "-q").code == 0
    schema = json.loads((ROOT / "configs/schema/event.schema.json").read_text())
    for line in events(out):
        jsonschema.validate(line, schema)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_the_files(tmp_path, model, number):
    clip, out, video = tmp_path / "clip.mp4", tmp_path / "events.jsonl", tmp_path / "out.mp4"
    make_clip(clip, 640, 360, 50)
    arguments = ["run", clip, "--model", model, "--events", out, "--output", video, "--json"]
    arguments += ["--set", "sources.0.loop=true"]
    result, seconds = gstorch_interrupted(arguments, number, lambda: line_count(out) > 60)
    assert result.code == 0, result.stderr
    assert seconds < SOON_S
    frames = result.source("clip")["frames"]
    assert frames == line_count(out) == count_frames(video)
    assert result.source("clip")["state"] == "stopped"


def test_a_stopped_file_is_partial(tmp_path):
    clip, out = tmp_path / "clip.mp4", tmp_path / "events.jsonl"
    make_clip(clip, 320, 240, 150)
    arguments = ["run", clip, "--model", "tests.slow_model:Slow", "--events", out, "--json"]
    result, _ = gstorch_interrupted(arguments, signal.SIGINT, lambda: line_count(out) > 1)
    assert result.code == 3
    assert result.source("clip")["frames"] == line_count(out) < 150


def test_a_killed_run_leaves_a_playable_video(tmp_path, model):
    clip, out, video = tmp_path / "clip.mp4", tmp_path / "events.jsonl", tmp_path / "out.mp4"
    make_clip(clip, 320, 240, 50)
    arguments = ["run", clip, "--model", model, "--events", out, "--output", video, "--set", "sources.0.loop=true"]
    process = subprocess.Popen(command(*arguments), env=environment(), stderr=subprocess.DEVNULL)
    try:
        wait_for(lambda: line_count(out) > 200)
    finally:
        process.kill()
        process.wait()
    assert count_frames(video) >= 100


def test_a_video_per_source_has_its_sources_size(tmp_path, model):
    make_clip(tmp_path / "wide.mp4", 640, 360, 20)
    make_clip(tmp_path / "tall.mp4", 241, 427, 20)
    definition = tmp_path / "two.yaml"
    definition.write_text(
        f"""
pipeline: two
sources: [wide.mp4, tall.mp4]
stages:
  - infer: {{model: {model}}}
  - track:
  - draw:
outputs:
  - file: {{path: "out-{{source}}.mp4", tile: off}}
"""
    )
    result = gstorch("run", definition, "-q")
    assert result.code == 0, result.stderr
    for name, size in (("wide", (640, 360)), ("tall", (242, 428))):
        video = tmp_path / f"out-{name}.mp4"
        assert count_frames(video) == 20
        assert video_size(video) == size


@pytest.mark.parametrize("name", ["a b.mp4", "a#b.mp4", "100%.mp4", "what?.mp4", "映像 видео.mp4", "-dash.mp4"])
def test_a_plain_path_is_taken_as_typed(tmp_path, model, name):
    make_clip(tmp_path / name, 320, 240, 5)
    typed = f"./{name}" if name.startswith("-") else name
    result = gstorch("run", typed, "--model", model, "--events", "e.jsonl", "-q", cwd=tmp_path)
    assert result.code == 0, result.stderr
    assert line_count(tmp_path / "e.jsonl") == 5


@pytest.mark.parametrize("name", ["missing file.mp4", "folder", "empty.mp4"])
def test_what_cannot_be_opened_is_named_as_typed(tmp_path, model, name):
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.mp4").touch()
    result = gstorch("run", name, "--model", model, "--events", "e.jsonl", cwd=tmp_path)
    assert result.code == 1
    assert name in result.stderr


def test_a_truncated_file_says_how_far_it_came(tmp_path, model):
    whole, cut = tmp_path / "whole.mkv", tmp_path / "cut.mkv"
    make_clip(tmp_path / "clip.mp4", 640, 360, 250)
    subprocess.run(["ffmpeg", "-v", "error", "-i", tmp_path / "clip.mp4", "-c", "copy", whole], check=True)
    cut.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    result = gstorch("run", cut, "--model", model, "--events", tmp_path / "e.jsonl", "--json")
    assert result.code == 3, result.stderr
    source = result.source("cut")
    assert source["state"] == "truncated"
    assert source["reason"] == f"decoded {source['frames']} of about 250 frames"
    assert 50 < source["frames"] < 200
