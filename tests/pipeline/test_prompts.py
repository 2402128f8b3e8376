"""The prompt stage on clips with known truth, against a stand-in endpoint: a red and a green rectangle per frame."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
import yaml

from pipelines.definition import definition_from_mapping
from pipelines.plan import make_plan, open_runner
from tests.clips import drifting, make_clip
from tests.gstorch_cli import count_frames, events, gstorch, gstorch_interrupted
from tests.onnx_models import NAMES, finder, save
from tests.vlm_server import Says, VlmServer, colour_of
from tests.waiting import SOON_S

FRAMES = {"a": 20, "b": 12}
SIZE = (320, 240)
COLORS = ((255, 0, 0), (0, 255, 0))
KEY = "sk-never-to-be-seen"


@pytest.fixture(scope="module")
def clips(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("clips")
    for seed, (name, frames) in enumerate(FRAMES.items()):
        make_clip(folder / f"{name}.mp4", *SIZE, frames, drifting(*SIZE, seed))
    return {name: folder / f"{name}.mp4" for name in FRAMES}


@pytest.fixture(scope="module")
def detector(tmp_path_factory) -> str:
    model = finder("yolov8", (320, 320), metadata={"names": str(list(NAMES))})
    return save(model, tmp_path_factory.mktemp("model") / "finder.onnx")


def definition(clips, out, detector, prompt, *more, **keys):
    stages = [{"infer": {"name": "detector", "model": detector}}, {"track": {}}, *more, {"prompt": prompt}]
    return {
        "pipeline": "test",
        "sources": [str(clip) for clip in clips],
        "stages": stages,
        "outputs": [{"events": {"path": str(out)}}],
        **keys,
    }


def run(clips, out, detector, prompt, *more, **keys):
    declared = definition(clips, out, detector, prompt, *more, **keys)
    runner = open_runner(make_plan(definition_from_mapping(declared, out.parent)))
    runner.run()
    return runner


def prompt_of(server, **keys):
    text = "What colour is {label} {track_id} of {source}?"
    return {"name": "colour", "endpoint": server.url, "model": "vl", "text": text, "api_key": KEY, **keys}


def counts(runner):
    return tuple(runner.element_counts("pyprompt")["colour"].values())


def answers(lines):
    return [event for line in lines for event in line.get("events", ()) if event["event"] == "answer"]


def test_every_track_gets_the_answer_about_its_own_picture(tmp_path, clips, detector):
    out = tmp_path / "e.jsonl"
    with VlmServer(Says(colour_of)) as server:
        runner = run(clips.values(), out, detector, prompt_of(server), mux={"width": 640, "height": 640})
    assert (runner.exit_code(), runner.outcome.error) == (0, "")
    lines = events(out)
    assert {name: len(events(out, name)) for name in FRAMES} == FRAMES
    tracks = {(e["source"], o["track_id"], o["label"]) for e in lines for o in e["objects"]}
    assert len(tracks) == 4
    assert {(a["source"], a["track_id"], a["text"]) for a in answers(lines)} == tracks
    assert counts(runner) == (4, 4, 0, 0, 0)
    assert {asked.text for asked in server.asked} == {f"What colour is {c} {t} of {s}?" for s, t, c in tracks}
    for item in (item for line in lines for item in line["objects"] if "attributes" in item):
        assert item["attributes"]["colour"]["label"] == item["label"]
    for name in FRAMES:  # from the answer on in every frame
        told = ["attributes" in item for line in events(out, name) for item in line["objects"][:1]]
        assert told == sorted(told)
        assert told[-1]


def test_the_picture_is_the_object_with_its_margin(tmp_path, clips, detector):
    out = tmp_path / "e.jsonl"
    with VlmServer(Says(colour_of)) as server:
        run([clips["a"]], out, detector, prompt_of(server, margin=0.5), mux={"width": 640, "height": 640})
    truth = drifting(*SIZE, 0)
    about = {a["label"]: a["frame"] for a in answers(events(out))}
    for asked in server.asked:
        label = asked.text.split()[3]
        x1, y1, x2, y2 = truth(about[label])[NAMES.index(label)]
        (picture,) = asked.pictures
        dx, dy = (x2 - x1) / 2, (y2 - y1) / 2
        left, top, right, bottom = max(0, x1 - dx), max(0, y1 - dy), min(SIZE[0], x2 + dx), min(SIZE[1], y2 + dy)
        assert abs(picture.shape[1] - (right - left)) <= 4
        assert abs(picture.shape[0] - (bottom - top)) <= 4
        inner = picture[round(y1 - top) + 6 : round(y2 - top) - 6, round(x1 - left) + 6 : round(x2 - left) - 6]
        assert abs(inner.reshape(-1, 3).mean(0) - COLORS[NAMES.index(label)]).max() < 15
        outside = picture[:6, :6].reshape(-1, 3).mean(0)
        assert abs(outside - COLORS[NAMES.index(label)]).max() > 60


def test_several_pictures_of_the_last_seconds_scaled_down(tmp_path, clips, detector):
    out = tmp_path / "e.jsonl"
    with VlmServer(Says("moving")) as server:
        keys = {"frames": 3, "within": "360ms", "max_side": 64, "trigger": {"classes": ["green"]}}
        run([clips["a"]], out, detector, prompt_of(server, **keys))
    (asked,) = server.asked
    assert len(asked.pictures) == 3
    assert {max(picture.shape) for picture in asked.pictures} == {64}
    (answer,) = answers(events(out))
    assert (answer["label"], answer["pictures"]) == ("green", 3)


def test_json_answers_by_a_schema_in_events(tmp_path, clips, detector):
    out = tmp_path / "e.jsonl"
    schema = {"type": "object", "required": ["paint"], "properties": {"paint": {"type": "string"}}}
    replies = [Says('{"paint": "crimson", "sure": true}'), Says('{"sure": false}')]
    with VlmServer(*replies) as server:
        keys = {"answer": "json", "answer_schema": schema, "attribute": "paint", "retries": 0, "concurrent": 1}
        runner = run([clips["a"]], out, detector, prompt_of(server, **keys))
    assert counts(runner) == (2, 1, 1, 0, 0)
    (answer,) = answers(events(out))
    assert answer["data"] == {"paint": "crimson", "sure": True}
    assert (answer["model"], answer["tokens"]) == ("stand-in-vl", 120)
    labels = {o["attributes"]["paint"]["label"] for o in events(out)[-1]["objects"] if "attributes" in o}
    assert labels == {"crimson"}
    assert server.asked[0].body["response_format"]["json_schema"]["schema"] == schema


def test_asked_when_a_zone_is_entered_and_about_whole_frames(tmp_path, clips, detector):
    zone = {"name": "right", "polygon": [[0.5, 0], [1, 0], [1, 1], [0.5, 1]]}
    analyze = {"analyze": {"zones": [zone], "confirm_frames": 1, "hold_frames": 1}}
    by_track, by_frame = tmp_path / "t.jsonl", tmp_path / "f.jsonl"
    with VlmServer(Says(colour_of)) as server:
        run([clips["a"]], by_track, detector, prompt_of(server, trigger={"events": ["entry"]}), analyze)
        (answer,) = answers(events(by_track))
        assert (answer["label"], answer["text"]) == ("green", "green")
        keys = {"per": "frame", "text": "What happens at {source}?", "trigger": {"interval": "400ms"}}
        run([clips["a"]], by_frame, detector, prompt_of(server, **keys))
    found = answers(events(by_frame))
    assert [(a["track_id"], a["frame"]) for a in sorted(found, key=lambda a: a["frame"])] == [(None, 0), (None, 10)]
    assert {asked.pictures[0].shape for asked in server.asked[1:]} == {(SIZE[1], SIZE[0], 3)}
    assert {asked.text for asked in server.asked[1:]} == {"What happens at a?"}


def test_video_goes_on_while_the_endpoint_never_answers(tmp_path, clips, detector):
    out, video = tmp_path / "e.jsonl", tmp_path / "{source}.mp4"
    outputs = [{"events": {"path": str(out)}}, {"file": {"path": str(video), "tile": "off"}}]
    with VlmServer(Says(slow=600)) as server:
        started = time.monotonic()
        keys = {"finish": "500ms", "concurrent": 1, "timeout": "10m"}
        runner = run(clips.values(), out, detector, prompt_of(server, **keys), outputs=outputs)
        seconds = time.monotonic() - started
        assert len(server.asked) == 1
    assert (runner.exit_code(), runner.outcome.stuck) == (0, False)
    assert seconds < SOON_S  # far less than the time-out of a request
    assert {name: len(events(out, name)) for name in FRAMES} == FRAMES
    assert {name: count_frames(tmp_path / f"{name}.mp4") for name in FRAMES} == FRAMES
    assert counts(runner) == (4, 0, 0, 4, 0)


def test_a_signal_ends_the_run_while_the_endpoint_never_answers(tmp_path, clips, detector):
    out, file = tmp_path / "e.jsonl", tmp_path / "d.yaml"
    with VlmServer(Says(slow=120)) as server:
        declared = definition([], out, detector, prompt_of(server, finish="1s", timeout="2m"))
        declared["sources"] = [{"uri": str(clips["a"]), "loop": True}]
        file.write_text(yaml.safe_dump(declared))
        arguments = ["run", file, "--json"]
        done, _ = gstorch_interrupted(arguments, signal.SIGTERM, lambda: bool(server.asked))
    assert done.code == 0, done.stderr
    assert "not drained" not in done.stderr
    assert done.summary["interrupted"]
    assert done.summary["frames"] == len(events(out))
    counted = done.summary["prompts"]["colour"]
    assert counted["asked"] == counted["dropped"] >= 2


def test_no_budget_no_answer_and_all_frames(tmp_path, clips, detector):
    out = tmp_path / "e.jsonl"
    with VlmServer(Says(colour_of)) as server:
        keys = {"budget": {"requests_per_minute": 1}, "finish": "1s"}
        runner = run(clips.values(), out, detector, prompt_of(server, **keys))
        assert len(server.asked) == 1
    assert counts(runner) == (4, 1, 0, 3, 3)
    assert {name: len(events(out, name)) for name in FRAMES} == FRAMES


def test_an_endpoint_that_refuses_stops_the_run_only_if_it_is_asked_to(tmp_path, clips, detector, caplog):
    out = tmp_path / "e.jsonl"
    with VlmServer(Says("no such model 'vl'", status=404)) as server:
        runner = run(clips.values(), out, detector, prompt_of(server, finish="1s", concurrent=1))
        assert (runner.exit_code(), len(events(out))) == (0, sum(FRAMES.values()))
        assert caplog.text.count("no such model 'vl'") == 1
        stopped = run(clips.values(), out, detector, prompt_of(server, on_error="stop"))
    assert stopped.exit_code() == 1
    assert "HTTP 404: no such model 'vl'" in stopped.outcome.error


def test_without_waiting_for_answers_at_the_end(tmp_path, clips, detector):
    out = tmp_path / "e.jsonl"
    with VlmServer(Says(slow=600)) as server:
        runner = run([clips["a"]], out, detector, prompt_of(server, finish="0s"))
    assert (runner.exit_code(), len(events(out))) == (0, FRAMES["a"])


def test_the_key_is_nowhere_to_be_seen(tmp_path, clips, detector):
    """Neither in the graph nor in logs, events and summary, also when the endpoint repeats it."""
    out, file = tmp_path / "e.jsonl", tmp_path / "d.yaml"
    with VlmServer(Says(colour_of), Says(f"what is {KEY}?", status=401)) as server:
        prompt = prompt_of(server, concurrent=1, api_key="${VLM_KEY}", params={"user": "${VLM_KEY}"})
        file.write_text(yaml.safe_dump(definition([clips["a"]], out, detector, prompt)))
        explained = gstorch("explain", file, env={"VLM_KEY": KEY})
        done = gstorch("run", file, "--json", env={"VLM_KEY": KEY, "GST_DEBUG": "2"})
    assert (explained.code, done.code) == (0, 0), done.stderr
    assert "api-key=***" in explained.stdout
    assert server.asked[0].headers["Authorization"] == f"Bearer {KEY}"
    assert server.asked[0].body["user"] == KEY
    assert "HTTP 401: what is ***?" in done.stderr
    counted = done.summary["prompts"]["colour"]
    assert counted == {"asked": 2, "answered": 1, "failed": 1, "dropped": 0, "over-budget": 0}
    for text in (explained.stdout, explained.stderr, done.stdout, done.stderr, out.read_text()):
        assert KEY not in text


def test_answers_are_counted_once_however_batches_are_kept(tmp_path, clips, detector):
    """Two stages behind each other: frames keep their order, and each has its own answers."""
    out = tmp_path / "e.jsonl"
    with VlmServer(Says(colour_of)) as server:
        first = {"prompt": {**prompt_of(server), "name": "first"}}
        runner = run(clips.values(), out, detector, prompt_of(server), first)
    assert runner.exit_code() == 0
    for name, frames in FRAMES.items():
        assert [line["frame"] for line in events(out, name)] == list(range(frames))
    found = sorted((a["stage"], a["source"], a["track_id"]) for a in answers(events(out)))
    assert len(found) == len(set(found)) == 8
    last = [o["attributes"] for o in events(out, "a")[-1]["objects"]]
    assert all(set(attributes) == {"first", "colour"} for attributes in last), last
