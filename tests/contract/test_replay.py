"""A recorded event file, run again."""

from __future__ import annotations

import json

import pytest

from tests.gstorch_cli import gstorch

DEFINITION = """
pipeline: again
sources:
  - {name: door, uri: gone.mp4}
  - {name: yard, uri: gone-too.mp4}
stages:
  - infer: {model: gone.onnx}
  - track: {}
  - operate: {operator: "rules:crowded", params: {limit: 1}}
  - draw: {}
outputs:
  - events: {path: out.jsonl}
  - file: {path: out.mp4}
"""
RULES = """
def crowded(frame, limit: int):
    frame.keep(frame.objects.class_ids == 0)
    if len(frame) > limit:
        frame.emit("crowded", people=len(frame))
"""


def line(source, frame, *objects, **more):
    return {
        "pipeline": "first", "source": source, "source_id": 7, "frame": frame, "stream_time_s": frame / 10,
        "time_utc": "2026-11-30T10:14:48.710Z", "width": 641, "height": 359, "objects": list(objects), **more,
    }  # fmt: skip


def thing(class_id=0, **more):
    return {
        "bbox": [10.5, 20.25, 50, 60], "class_id": class_id, "label": ["person", "dog"][class_id], "confidence": 0.75,
        "track_id": 3, **more,
    }  # fmt: skip


FULL = thing(
    angle=0.5,
    keypoints=[[12.0, 22.0, 0.5], [None, None, None], [14.0, 30.0, 0.25]],
    attributes={"colour": {"label": "red", "class_id": 2, "probability": 0.75}},
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "again.yaml").write_text(DEFINITION)
    (tmp_path / "rules.py").write_text(RULES)
    return tmp_path


def again(folder, *lines, options=()):
    (folder / "in.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    return gstorch("replay", "in.jsonl", "again.yaml", "--json", *options, cwd=folder)


def written(folder):
    return [json.loads(one) for one in (folder / "out.jsonl").read_text().splitlines()]


def test_objects_come_out_as_they_went_in(folder):
    lines = [line("yard", 0, FULL), line("door", 0, thing(confidence=None, track_id=None)), line("yard", 1)]
    done = again(folder, *lines)
    assert done.code == 0, done.stderr
    out = written(folder)
    assert [(one["source"], one["source_id"], one["frame"]) for one in out] == [
        ("yard", 1, 0),
        ("door", 0, 0),
        ("yard", 1, 1),
    ]
    for before, after in zip(lines, out, strict=True):
        for key in ("frame", "stream_time_s", "time_utc", "width", "height"):
            assert after[key] == before[key]
    (turned,), (plain,), nothing = (one["objects"] for one in out)
    assert {key: value for key, value in turned.items() if key != "corners"} == FULL
    assert (plain["confidence"], plain["track_id"], nothing) == (None, None, [])
    assert done.summary["frames"] == 3


def test_parents_stay_those_of_the_objects_that_are_left(folder):
    objects = [thing(), {**thing(), "bbox": [None] * 4}, thing(track_id=4), thing(track_id=5, parent=2)]
    assert again(folder, line("door", 0, *objects, thing(1), thing(track_id=6, parent=1))).code == 0
    (one,) = written(folder)  # without the dog, and what cannot be placed
    assert [(item["track_id"], item.get("parent")) for item in one["objects"]] == [
        (3, None),
        (4, None),
        (5, 1),
        (6, None),
    ]


def test_operators_work_on_it_and_their_old_results_do_not_count(folder):
    old = [{"event": "crowded", "people": 99}]
    done = again(folder, line("yard", 0, thing(), thing(), thing(1), events=old), line("yard", 1, thing(), events=old))
    assert done.code == 0, done.stderr
    first, second = written(folder)
    assert first["events"] == [{"event": "crowded", "people": 3}]
    assert [item["label"] for item in first["objects"]] == ["person", "person"]
    assert "events" not in second
    assert done.summary["operators"]["operate"] == {"frames": 2, "failed": 0, "dropped": 0}


def test_twice_the_same(folder):
    lines = [line(source, n, thing(), thing(1), FULL) for n in range(20) for source in ("door", "yard")]
    results = []
    for _ in range(2):
        assert again(folder, *lines).code == 0
        results.append((folder / "out.jsonl").read_bytes())
    assert results[0] == results[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "in.jsonl:2: is not JSON"),
        ("[]", "in.jsonl:2: is not a line of an event file"),
        ('{"source": "door"}', "in.jsonl:2: is not a line of an event file: it lacks 'objects'"),
        (json.dumps(line("shop", 0)), "in.jsonl:2: the definition has no source 'shop' (it has: door, yard)"),
        (json.dumps(line("door", 0, {"bbox": [1, 2]})), "in.jsonl:2: is not a line of an event file"),
    ],
)
def test_lines_that_are_no_events(folder, text, message):
    (folder / "in.jsonl").write_text(json.dumps(line("door", 0)) + "\n" + text + "\n")
    done = gstorch("replay", "in.jsonl", "again.yaml", cwd=folder)
    assert (done.code, done.stdout) == (1, "")
    assert message in done.stderr


def test_the_recording_is_not_overwritten(folder):
    (folder / "out.jsonl").write_text(json.dumps(line("door", 0)) + "\n")
    done = gstorch("replay", "out.jsonl", "again.yaml", cwd=folder)
    assert done.code == 1
    assert "is an output of the definition, too" in done.stderr and "--set outputs.events.path=" in done.stderr
    assert len(written(folder)) == 1


@pytest.mark.parametrize(("text", "message"), [(None, "No such file"), ("", "has no events in it"), ("{}", "lacks")])
def test_what_an_earlier_run_wrote_stays_if_there_is_nothing_to_replay(folder, text, message):
    (folder / "out.jsonl").write_text(json.dumps(line("door", 0)) + "\n")
    if text is not None:
        (folder / "in.jsonl").write_text(text)
    done = gstorch("replay", "in.jsonl", "again.yaml", cwd=folder)
    assert done.code == 1
    assert message in done.stderr
    assert len(written(folder)) == 1


def test_a_failing_operator_ends_it(folder):
    (folder / "rules.py").write_text("def crowded(frame, limit: int):\n    raise ValueError('no')\n")
    done = again(folder, line("door", 4))
    assert done.code == 1
    assert "operator 'operate' failed on source 'door', frame 4: ValueError: no" in done.stderr
