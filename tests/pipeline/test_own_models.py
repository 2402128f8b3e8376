"""Classes and functions of one's own in a run: what they see, and what becomes of those that misbehave."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipelines.definition import definition_from_mapping
from pipelines.plan import make_plan, open_runner
from tests.clips import drifting, make_clip
from tests.gstorch_cli import events, gstorch
from tests.onnx_models import NAMES, finder, save

FRAMES = 10
SIZE = (160, 120)

MISBEHAVIOUR = {
    "RaisesOnFour": "ValueError: no such luck",
    "ExitsOnFour": "SystemExit: had enough",
    "Recurses": "RecursionError: maximum recursion depth exceeded",
    "LacksMemory": "MemoryError: Unable to allocate 1.00 PiB",
    "Interrupts": "KeyboardInterrupt: not by the user",
    "PaintsOver": "ValueError: assignment destination is read-only",
    "ScoresInColumns": "ValueError: infer() returned scores of shape (1, 1): (1) is needed for 1 objects",
    "BoxesOfThree": "ValueError: infer() returned boxes of shape (1, 3): (1, 4) is needed for 1 objects",
    "TextAsScores": "TypeError: infer() returned an array of <U4 as scores: an array of numbers is needed",
    "PointsWithoutScores": "ValueError: infer() returned keypoints of shape (1, 5, 2): (1, n, 3) is needed",
    "TooManyRows": "ValueError: infer() returned scores of shape (2,): (1) is needed for 1 objects",
}


@pytest.fixture(scope="module")
def clips(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("clips")
    paths = [folder / f"{name}.mp4" for name in ("door", "yard")]
    for path in paths:
        make_clip(path, *SIZE, FRAMES)
    return paths


def run(clips, out, mux=None, **infer):
    definition = {
        "pipeline": "test",
        "sources": [{"uri": str(clip)} for clip in clips],
        "mux": mux or {},
        "stages": [{"infer": infer}],
        "outputs": [{"events": {"path": str(out)}}],
    }
    runner = open_runner(make_plan(definition_from_mapping(definition, out.parent)))
    runner.run()
    return runner


def own(name):
    return f"tests.own_models:{name}"


@pytest.mark.parametrize(("name", "text"), MISBEHAVIOUR.items(), ids=MISBEHAVIOUR)
def test_misbehaviour_stops_the_run_and_is_named(tmp_path, clips, name, text):
    runner = run(clips[:1], tmp_path / "e.jsonl", {"batch_size": 1}, model=own(name))
    assert runner.exit_code() == 1
    assert runner.outcome.error.startswith(f"infer: source 'door', frame 4: {text}")
    assert runner.outcome.trace.startswith("Traceback (most recent call last):")


@pytest.mark.parametrize("name", MISBEHAVIOUR)
def test_misbehaviour_costs_its_frame_and_no_other(tmp_path, clips, name):
    out = tmp_path / "e.jsonl"
    runner = run(clips, out, model=own(name), on_error="skip")
    assert (runner.exit_code(), runner.outcome.error) == (0, "")
    assert runner.element_counts("pyinfer")["infer"]["frames-failed"] == 2
    for source in ("door", "yard"):
        assert [len(e["objects"]) for e in events(out, source)] == [1, 1, 1, 1, 0] + [1] * (FRAMES - 5)


def test_a_class_sees_names_times_and_what_it_kept(tmp_path, clips):
    out = tmp_path / "e.jsonl"
    runner = run(clips, out, model=own("Remembers"))
    assert (runner.exit_code(), runner.outcome.error) == (0, "")
    for source in ("door", "yard"):
        found = [e["objects"][0]["label"] for e in events(out, source)]
        assert found == [f"{source} {n} {n / 25:.2f}" for n in range(FRAMES)]


def test_a_function_reads_a_models_outputs(tmp_path, clips):
    model = save(finder("yolov8", (320, 320), metadata={"names": str(list(NAMES))}), tmp_path / "finder.onnx")
    out = tmp_path / "e.jsonl"
    runner = run(clips, out, model=model, postprocess=own("read"), params={"least": 0.4})
    assert (runner.exit_code(), runner.outcome.error) == (0, "")
    truth = drifting(*SIZE)
    for event in events(out):
        assert [o["label"] for o in event["objects"]] == ["red", "green"]
        found = np.array([o["bbox"] for o in event["objects"]])
        assert abs(found - list(truth(event["frame"]).values())).max() < 1


def test_parameters_are_checked_before_anything_starts(tmp_path, clips):
    (tmp_path / "plates.py").write_text(
        "from tests.own_models import Good\n\n"
        "class Plates(Good):\n"
        "    def __init__(self, config, threshold: float): ...\n"
    )
    file = tmp_path / "p.yaml"
    file.write_text(
        f"pipeline: p\nsources: [{clips[0]}]\nstages:\n  - infer:\n      model: plates:Plates\n"
        "      params: {treshold: 0.5}\n"
    )
    for command in ("validate", "run"):
        result = gstorch(command, file.name, cwd=tmp_path)
        assert result.code == 2
        assert result.stderr.splitlines()[-2:] == [
            "p.yaml:6:15: stages[0].infer.params.threshold: is missing",
            "p.yaml:6:16: stages[0].infer.params.treshold: unknown parameter 'treshold' (did you mean 'threshold'?)",
        ]
