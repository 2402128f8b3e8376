"""What goes wrong inside a run: models that fail, answer nonsense, block; what the user is told, and the exit code."""

from __future__ import annotations

import logging
import re
import signal
from pathlib import Path

import pytest

from pipelines.definition import definition_from_mapping, load_definition
from pipelines.plan import make_plan, open_runner
from pipelines.runner import Runner
from tests import onnx_models
from tests.clips import make_clip
from tests.gstorch_cli import events, gstorch, gstorch_interrupted, line_count
from tests.onnx_models import finder, save
from tests.own_models import BOX, RELEASE
from tests.waiting import SOON_S

FRAMES = 12
BLUE_FROM, BLUE_UNTIL = 5, 8


@pytest.fixture(scope="module")
def clips(tmp_path_factory) -> dict[str, Path]:
    """``red`` is a plain clip; ``blue`` is blue all over from frame 5 to 7."""
    folder = tmp_path_factory.mktemp("clips")
    paths = {name: folder / f"{name}.mp4" for name in ("red", "blue")}
    all_over = {2: (0.0, 0.0, 160.0, 120.0)}
    make_clip(paths["red"], 160, 120, FRAMES)
    make_clip(paths["blue"], 160, 120, FRAMES, lambda n: all_over if BLUE_FROM <= n < BLUE_UNTIL else {})
    return paths


@pytest.fixture(scope="module")
def fails_on_blue(tmp_path_factory) -> str:
    model = finder("yolov8", (320, 320), fails_on_blue=True, metadata={"names": str(list(onnx_models.NAMES))})
    return save(model, tmp_path_factory.mktemp("model") / "blue.onnx")


def run(
    clips: list[Path], out: Path, runtime: dict | None = None, batch_size: int | None = None, **infer: object
) -> Runner:
    """Run in this process: one infer stage, an event file. By default there are as many frames in a batch as cores."""
    definition = {
        "pipeline": "test",
        "sources": [{"uri": str(clip)} for clip in clips],
        "stages": [{"infer": infer}],
        "outputs": [{"events": {"path": str(out)}}],
        "runtime": runtime or {},
        **({"mux": {"batch_size": batch_size}} if batch_size else {}),
    }
    runner = open_runner(make_plan(definition_from_mapping(definition, out.parent)))
    runner.run()
    return runner


def own(name: str) -> str:
    return f"tests.own_models:{name}"


# --- a model that fails on some frames --------------------------------------------------------------------------------


def test_a_failing_network_stops_the_run(tmp_path, clips, fails_on_blue):
    result = gstorch("run", clips["red"], clips["blue"], "-m", fails_on_blue, "-e", tmp_path / "e.jsonl", "--json")
    assert result.code == 1
    last = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(last) == 1
    assert last[0].startswith(f"error: infer: source 'blue', frame {BLUE_FROM}: ")
    assert "idx=1 must be within" in last[0]
    assert result.stderr.count("Traceback (most recent call last):") == 1
    assert result.summary["exit_code"] == 1
    assert result.summary["error"] == last[0].removeprefix("error: ")
    frames = [e["frame"] for e in events(tmp_path / "e.jsonl", "blue")]
    assert frames == list(range(len(frames)))
    assert len(frames) <= BLUE_FROM


def test_failing_frames_are_skipped_and_counted(tmp_path, clips, fails_on_blue):
    out = tmp_path / "e.jsonl"
    result = gstorch(
        "run", clips["red"], clips["blue"], "-m", fails_on_blue, "-e", out, "--json",
        "--set", "stages.infer.on_error=skip",
    )  # fmt: skip
    assert result.code == 0, result.stderr
    counts = result.summary["inference"]["infer"]
    assert counts == {"frames-inferred": 2 * FRAMES - 3, "frames-failed": 3, "nan-count": 0}
    assert [result.source(name)["frames_failed"] for name in ("red", "blue")] == [0, 3]
    assert result.stderr.count(f"source 'blue', frame {BLUE_FROM}: ") == 1  # and only the first failure is told
    assert result.stderr.count("Traceback") == 1
    assert f"the model failed on 3 of {2 * FRAMES} frames" in result.stderr.strip().splitlines()[-1]
    for name in ("red", "blue"):
        assert [e["frame"] for e in events(out, name)] == list(range(FRAMES))
    assert all(len(e["objects"]) == 2 for e in events(out, "red")[5:])


# --- models of one's own ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "frame", "text", "line"),
    [
        ("RaisesOnFour", 4, "ValueError: no such luck", 'raise ValueError("no such luck")'),
        ("ExitsOnFour", 4, "SystemExit: had enough", 'sys.exit("had enough")'),
        ("AnswersNone", 0, "a list of one Detections per frame (1), not NoneType", "checked_answer"),
        ("AnswersTooFew", 0, "a list of one Detections per frame (1), not a list of 0", "checked_answer"),
        ("AnswersArrays", 0, "a list of one Detections per frame (1), not a list of 1 (ndarray)", "checked_answer"),
        ("AnswersNegativeClass", 0, "class_ids below 0: -1", "checked_answer"),
    ],
)
def test_a_model_of_ones_own_that_fails(tmp_path, clips, name, frame, text, line):
    runner = run([clips["red"]], tmp_path / "e.jsonl", batch_size=1, model=own(name))
    assert runner.exit_code() == 1
    assert runner.outcome.error.startswith(f"infer: source 'red', frame {frame}: ")
    assert text in runner.outcome.error
    assert runner.outcome.trace.startswith("Traceback (most recent call last):")
    assert line in runner.outcome.trace


@pytest.mark.parametrize("name", ["RaisesOnFour", "ExitsOnFour"])
def test_of_two_sources_only_the_frames_that_fail_are_skipped(tmp_path, clips, name, caplog):
    out = tmp_path / "e.jsonl"
    runner = run([clips["red"], clips["blue"]], out, model=own(name), on_error="skip")
    assert (runner.exit_code(), runner.outcome.error) == (0, "")
    assert runner.element_counts("pyinfer")["infer"]["frames-failed"] == 2
    for source in ("red", "blue"):
        assert [len(e["objects"]) for e in events(out, source)] == [1, 1, 1, 1, 0] + [1] * (FRAMES - 5)


def test_rows_that_are_not_numbers_are_left_out_and_counted(tmp_path, clips, caplog):
    caplog.set_level(logging.WARNING, "gstorch")
    out = tmp_path / "e.jsonl"
    runner = run([clips["red"]], out, model=own("AnswersNaN"))
    assert runner.exit_code() == 0
    assert runner.element_counts("pyinfer")["infer"]["nan-count"] == 2 * FRAMES
    assert caplog.text.count("not finite numbers") == 1
    assert [[o["bbox"] for o in e["objects"]] for e in events(out)] == [[list(BOX)]] * FRAMES


def test_broken_scores_of_a_network_are_in_the_summary(tmp_path, clips):
    model = save(finder("yolov8", (320, 320), not_numbers=True), tmp_path / "nan.onnx")
    result = gstorch("run", clips["red"], "-m", model, "-e", tmp_path / "e.jsonl", "--json")
    assert result.code == 0, result.stderr
    assert result.summary["inference"]["infer"]["nan-count"] == 2 * FRAMES
    assert result.stderr.count("not finite numbers") == 1
    assert line_count(tmp_path / "e.jsonl") == FRAMES


def test_a_model_may_paint_over_its_pictures(tmp_path, clips):
    runner = run([clips["red"], clips["blue"]], tmp_path / "e.jsonl", model=own("Mutates"))
    assert (runner.exit_code(), runner.outcome.error) == (0, "")
    assert line_count(tmp_path / "e.jsonl") == 2 * FRAMES


def test_what_a_model_prints_is_no_result(tmp_path, clips):
    result = gstorch("run", clips["red"], "-m", own("Prints"), "-e", "-", "--json", "-q")
    assert result.code == 0, result.stderr
    assert len(result.stdout.splitlines()) == FRAMES + 1  # events, then the summary
    assert result.summary["frames"] == FRAMES
    assert result.stderr.count("said with print") == result.stderr.count("said to descriptor 1") > 0


def test_a_model_that_fails_to_close_has_done_its_work(tmp_path, clips, caplog):
    runner = run([clips["red"]], tmp_path / "e.jsonl", model=own("FailsToClose"))
    assert (runner.exit_code(), runner.outcome.stuck) == (0, False)
    assert "model 'tests.own_models:FailsToClose' fails in close()" in caplog.text
    assert "will not go" in caplog.text


# --- refused at the start ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "options", "parts"),
    [
        (onnx_models.unknown_layout(), {}, ["output (1, 7, 7, 30)", "'layout'"]),
        (finder("yolov8", (64, 64)), {"labels": ["a", "b"]}, ["(1, 7, 84)", "3 classes", "2 class names", "'labels'"]),
        (finder("yolov8", (64, 64)), {"device": "cuda"}, ["cuda was asked for", "onnxruntime-gpu"]),
        (b"no model at all, whatever its name says", {}, ["not a complete ONNX file"]),
    ],
    ids=["layout", "labels", "cuda", "not ONNX"],
)
def test_a_model_is_refused_before_any_frame(tmp_path, clips, model, options, parts):
    path = tmp_path / "m.onnx"
    path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    runner = run([clips["red"]], tmp_path / "e.jsonl", model=str(path), **options)
    assert runner.exit_code() == 1
    assert runner.outcome.error.startswith(f"infer: model '{path}': ")
    for part in parts:
        assert part in runner.outcome.error
    assert "\n" not in runner.outcome.error
    assert runner.outcome.trace == ""
    assert line_count(tmp_path / "e.jsonl") == 0


def test_a_model_of_a_source_is_refused_with_the_source_and_the_line(tmp_path, clips):
    (tmp_path / "night.onnx").write_bytes(b"no model")
    file = tmp_path / "p.yaml"
    file.write_text(
        f"pipeline: p\nsources:\n  - {clips['red']}\n  - name: yard\n    uri: {clips['blue']}\n"
        f"    infer:\n      people:\n        model: night.onnx\n"
        f"stages:\n  - infer: {{name: people, model: '{own('Good')}'}}\noutputs: [{{events: {{path: e.jsonl}}}}]\n"
    )
    runner = open_runner(make_plan(load_definition(file)))
    runner.run()
    assert runner.exit_code() == 1
    start = f"people: source 'yard': model '{tmp_path}/night.onnx': "
    assert runner.outcome.error.startswith(start)
    assert runner.outcome.error.endswith(f"({file}:8: sources[1].infer.people.model)")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("FailsToLoad", "fails to load: RuntimeError: weights are bad"),
        ("ExitsInLoad", "fails to load: SystemExit: 7"),
    ],
)
def test_a_class_that_fails_to_load(tmp_path, clips, name, text):
    runner = run([clips["red"]], tmp_path / "e.jsonl", model=own(name))
    assert runner.exit_code() == 1
    assert own(name) in runner.outcome.error
    assert text in runner.outcome.error
    assert runner.outcome.trace


def test_a_class_that_there_is_not_rejects_the_definition(clips):
    result = gstorch("run", clips["red"], "-m", own("Goood"))
    assert result.code == 2
    message = "module 'tests.own_models' has no class 'Goood' (did you mean 'Good'?)"
    assert result.stderr.strip() == f"--model: stages[0].infer.model: {message}"


def test_options_that_are_wrong_are_called_by_their_names(clips):
    result = gstorch("run", clips["red"], "-m", "none.onnx", "--confidence", "7", "--labels", "none.txt")
    assert result.code == 2
    assert [line.split(": ")[0] for line in result.stderr.splitlines()] == ["--confidence", "--labels", "--model"]
    result = gstorch("run", clips["red"], "--confidence", "0.5")
    assert (result.code, result.stderr) == (2, "error: --confidence: only with --model\n")


# --- a model that blocks ----------------------------------------------------------------------------------------------


def test_a_blocked_run_fails_after_the_stall_timeout(tmp_path, clips, monkeypatch):
    monkeypatch.setattr("pipelines.runner.NULL_TIMEOUT_S", 0.5)
    RELEASE.clear()
    runner = run([clips["red"]], tmp_path / "e.jsonl", {"stall_timeout": "2s"}, 1, model=own("BlocksOnFour"))
    RELEASE.set()
    assert runner.exit_code() == 1
    assert runner.outcome.error.startswith(
        "no frame came through for 2 s although 'red' should deliver (runtime.stall_timeout): "
        "buffers last passed 'infer-convert-caps' and are held by 'infer' (pyinfer); waiting in queues: 'infer-queue' ("
    )
    assert runner.outcome.stuck
    assert line_count(tmp_path / "e.jsonl") == 4


def blocked(clips: dict[str, Path], out: Path) -> list[str | Path]:
    arguments = ["run", clips["red"], "-m", own("BlocksOnFour"), "-e", out, "--json"]
    return [*arguments, "--set", "mux.batch_size=1", "--set", "runtime.stop_timeout=500ms"]


def test_sigterm_ends_a_blocked_run_in_bounded_time(tmp_path, clips):
    out = tmp_path / "e.jsonl"
    result, seconds = gstorch_interrupted(blocked(clips, out), signal.SIGTERM, lambda: line_count(out) >= 4)
    assert result.code == 1
    assert seconds < SOON_S
    assert "the pipeline did not stop within" in result.summary["error"]
    assert result.summary["interrupted"]


def test_a_model_that_hangs_is_not_waited_for_at_a_stop(tmp_path, clips):
    out = tmp_path / "e.jsonl"
    arguments = [*blocked(clips, out), "--set", "runtime.stop_timeout=4s"]
    result, _ = gstorch_interrupted(arguments, signal.SIGTERM, lambda: line_count(out) >= 4)
    assert result.code == 1
    assert re.search(r"the model of 'infer' has been at a batch for \d s: it is not waited for", result.stderr)
    assert re.fullmatch(
        r"the pipeline did not stop within 1 s; the model of 'infer' has been at a batch for \d s",
        result.summary["error"],
    )


def test_a_second_signal_aborts(tmp_path, clips):
    out = tmp_path / "e.jsonl"
    arguments = [*blocked(clips, out), "--set", "runtime.stop_timeout=10m"]
    result, seconds = gstorch_interrupted(arguments, signal.SIGINT, lambda: line_count(out) >= 4, times=2)
    assert result.code == 1
    assert "aborted by a second SIGINT" in result.summary["error"]
    assert seconds < SOON_S
