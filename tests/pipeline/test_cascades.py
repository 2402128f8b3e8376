"""Stages on the objects of others, on clips with known truth: a red and a green rectangle in every frame."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from pipelines.definition import definition_from_mapping
from pipelines.plan import make_plan, open_runner
from tests import cascade_models
from tests.cascade_models import CALLS
from tests.clips import drifting, make_clip
from tests.gstorch_cli import events
from tests.onnx_heads import head
from tests.onnx_models import NAMES, finder, save

FRAMES = 10
SIZE = (320, 240)
SHADE = {"red": "crimson", "green": "lime"}


@pytest.fixture(scope="module")
def clips(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("clips")
    paths = [folder / f"{name}.mp4" for name in ("a", "b")]
    for seed, path in enumerate(paths):
        make_clip(path, *SIZE, FRAMES, drifting(*SIZE, seed))
    return paths


@pytest.fixture(scope="module")
def detector(tmp_path_factory) -> str:
    model = finder("yolov8", (320, 320), metadata={"names": str(list(NAMES))})
    return save(model, tmp_path_factory.mktemp("model") / "finder.onnx")


@pytest.fixture(autouse=True)
def no_calls():
    CALLS.clear()


def run(clips, out, stages, **keys):
    definition = {
        "pipeline": "test",
        "sources": [{"uri": str(clip)} for clip in clips],
        "stages": stages,
        "outputs": [{"events": {"path": str(out), "embeddings": True}}],
        **keys,
    }
    runner = open_runner(make_plan(definition_from_mapping(definition, out.parent)))
    runner.run()
    return runner


def first(detector):
    return {"infer": {"name": "detector", "model": detector}}


def second(name, on_error="stop", **operate_on):
    on = {"stage": "detector", **operate_on}
    return {
        "infer": {"name": "second", "model": f"tests.cascade_models:{name}", "operate_on": on, "on_error": on_error}
    }


def shades(event):
    """Label of the detector -> label of the classifier, where there is one."""
    return {o["label"]: o["attributes"]["second"]["label"] for o in event["objects"] if "attributes" in o}


def crops():
    return [crop for call in CALLS for crop in call]


def test_each_track_is_classified_once_and_labelled_in_every_frame(tmp_path, clips, detector):
    out = tmp_path / "e.jsonl"
    runner = run(clips, out, [first(detector), {"track": {}}, second("Colour")])
    assert (runner.exit_code(), runner.outcome.error) == (0, "")
    tracks = {(e["source"], o["track_id"]) for e in events(out) for o in e["objects"] if o["track_id"] is not None}
    assert len(tracks) == len(crops()) == 4
    shown = [shades(e) for e in events(out) if e["objects"]]  # none until the tracker is sure
    assert shown == [SHADE] * len(shown)
    assert len(shown) >= 2 * (FRAMES - 3)
    labelled = events(out)[-1]["objects"][0]["attributes"]["second"]
    assert (labelled["probability"], labelled["class_id"]) == (0.875, 0)
    assert runner.element_counts("pyinfer")["second"]["frames-inferred"] == len(crops())


def test_model_files_as_second_stages(tmp_path, clips, detector):
    """A classifier and an embedding model in ONNX, whose task their metadata and the definition tell."""
    out = tmp_path / "e.jsonl"
    metadata = {"names": str(list(NAMES)), "task": "classify"}
    classifier = save(head("classify", "classify", (64, 64), metadata=metadata), tmp_path / "classifier.onnx")
    embedder = save(head("embed", "embed", (64, 64)), tmp_path / "embedder.onnx")
    on = {"stage": "detector"}
    runner = run(
        clips, out,
        [
            first(detector), {"track": {}},
            {"infer": {"name": "second", "model": classifier, "operate_on": on}},
            {"infer": {"name": "third", "model": embedder, "task": "embed", "operate_on": on}},
        ],
    )  # fmt: skip
    assert (runner.exit_code(), runner.outcome.error) == (0, "")
    shown = [shades(e) for e in events(out) if e["objects"]]
    assert shown == [{"red": "red", "green": "green"}] * len(shown)
    for item in (o for e in events(out) for o in e["objects"]):
        assert np.argmax(item["embedding"]) == item["class_id"]
        assert np.linalg.norm(item["embedding"]) == pytest.approx(1, abs=1e-3)
    counts = runner.element_counts("pyinfer")
    assert counts["second"]["frames-inferred"] == counts["third"]["frames-inferred"] == 4


def test_without_a_tracker_every_object_is_looked_at_and_this_is_said(tmp_path, clips, detector, caplog):
    caplog.set_level(logging.INFO, "gstorch")
    out = tmp_path / "e.jsonl"
    run(clips, out, [first(detector), second("Colour")])
    assert len(crops()) == 2 * 2 * FRAMES
    assert all(len(call) == 4 for call in CALLS if len({source for source, *_ in call}) == 2)  # one call per batch
    assert [shades(e) for e in events(out)] == [SHADE] * 2 * FRAMES
    assert "second: no tracker comes before it" in caplog.text


def test_only_the_classes_that_are_asked_for(tmp_path, clips, detector):
    out = tmp_path / "e.jsonl"
    run(clips, out, [first(detector), second("Colour", classes=["green"])])
    assert len(crops()) == 2 * FRAMES
    assert [shades(e) for e in events(out)] == [{"green": "lime"}] * 2 * FRAMES


def test_a_class_that_the_first_stage_does_not_have(tmp_path, clips, detector):
    runner = run(clips, tmp_path / "e.jsonl", [first(detector), second("Colour", classes=["gren"])])
    assert runner.exit_code() == 1
    expected = "second: operate-on: the stage that it works on has no class 'gren': did you mean 'green'?"
    assert runner.outcome.error == expected


def test_a_stage_on_the_objects_of_one_that_only_labels_is_told(tmp_path, clips, detector):
    """Only the model says that it is a classifier, so that the definition is accepted."""
    third = {"infer": {"name": "third", "model": "tests.cascade_models:Vector", "operate_on": {"stage": "second"}}}
    runner = run(clips[:1], tmp_path / "e.jsonl", [first(detector), second("Colour"), third])
    assert runner.exit_code() == 1
    assert runner.outcome.error == (
        "third: operate-on: stage 'second' finds no objects: its model's task is classify, and its answers are put on "
        "the objects that it works on itself. Name the stage that finds these (operate_on: stage)"
    )


@pytest.mark.parametrize("mux", [{"width": 320, "height": 240}, {"width": 640, "height": 640}])
def test_objects_found_in_objects(tmp_path, clips, detector, mux):
    """The middle of each rectangle, in pixels of the source, wherever the mux puts the picture."""
    out = tmp_path / "e.jsonl"
    run(clips[:1], out, [first(detector), second("Middle")], mux=mux)
    truth = drifting(*SIZE, 0)
    for event in events(out):
        outer = {o["label"]: np.array(o["bbox"]) for o in event["objects"] if o["label"] != "middle"}
        inner = [np.array(o["bbox"]) for o in event["objects"] if o["label"] == "middle"]
        assert len(inner) == 2
        for item in event["objects"]:
            assert ("parent" in item) == (item["label"] == "middle")
            around = event["objects"][item.get("parent", 0)]["bbox"]
            assert item["label"] != "middle" or (around[0] < item["bbox"][0] and item["bbox"][2] < around[2])
        for class_id, box in truth(event["frame"]).items():
            x1, y1, x2, y2 = box
            middle = [x1 + (x2 - x1) / 4, y1 + (y2 - y1) / 4, x2 - (x2 - x1) / 4, y2 - (y2 - y1) / 4]
            assert min(abs(found - middle).max() for found in inner) < 2  # crops are whole pixels
            assert abs(outer[NAMES[class_id]] - box).max() < 1.5


def test_vectors_and_key_points_of_objects(tmp_path, clips, detector):
    vectors, poses = tmp_path / "v.jsonl", tmp_path / "p.jsonl"
    run(clips[:1], vectors, [first(detector), second("Vector")])
    expected = {"red": [1, 0, 0], "green": [0, 1, 0]}
    assert [{o["label"]: o["embedding"] for o in e["objects"]} for e in events(vectors)] == [expected] * FRAMES
    run(clips[:1], poses, [first(detector), second("Corners")], mux={"width": 640, "height": 640})
    for event in events(poses):
        for item in event["objects"]:
            x1, y1, x2, y2 = item["bbox"]
            points = np.array(item["keypoints"])
            assert abs(points[:, :2] - [(x1, y1), (x2, y1), (x2, y2)]).max() < 1.5
            assert points[:, 2].tolist() == [1, 1, 0.5]


def test_crops_that_fail_are_skipped_and_the_others_are_not(tmp_path, clips, detector, caplog):
    out = tmp_path / "e.jsonl"
    stages = [first(detector), second("NoLime", on_error="skip")]
    runner = run(clips[:1], out, stages)
    assert runner.exit_code() == 0
    assert [shades(e) for e in events(out)] == [{"red": "crimson"}] * FRAMES
    assert runner.element_counts("pyinfer")["second"]["frames-failed"] == FRAMES
    assert caplog.text.count("cannot stand lime: this frame is skipped") == 1


def test_crops_that_fail_stop_the_run_and_their_frame_is_named_once(tmp_path, clips, detector):
    runner = run(clips[:1], tmp_path / "e.jsonl", [first(detector), second("NoLime")], mux={"batch_size": 1})
    assert runner.exit_code() == 1
    assert runner.outcome.error == "second: source 'a', frame 0: ValueError: cannot stand lime"


def test_models_over_the_same_frames_apart_and_merged(tmp_path, clips, detector):
    apart, merged = tmp_path / "a.jsonl", tmp_path / "m.jsonl"
    other = {"infer": {"name": "other", "model": "tests.own_models:Good"}}
    run(clips[:1], apart, [first(detector), other])
    assert [(o["label"], o["class_id"]) for o in events(apart)[0]["objects"]] == [
        ("red", 0),
        ("green", 1),
        ("thing", 0),
    ]
    other["infer"] |= {"merge_with": "detector", "class_offset": 3}
    run(clips[:1], merged, [first(detector), other, second("Colour", classes=["red", "green", "thing"])])
    for event in events(merged):
        assert [(o["label"], o["class_id"]) for o in event["objects"]] == [("red", 0), ("green", 1), ("thing", 3)]
        assert all("attributes" in o for o in event["objects"])  # of both, since they have one id
    assert cascade_models.CALLS
