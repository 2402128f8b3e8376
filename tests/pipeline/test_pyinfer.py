"""The pyinfer element on batches of pictures whose boxes are known."""

import logging
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from elements.base import Gst, caps
from elements.inference import model
from elements.metadata.detections import Detections
from elements.metadata.placement import Placement
from elements.portable.carrier import batch_of, new_batch_buffer
from elements.portable.frames import frames_of
from elements.portable.meta import BatchMeta, FrameMeta
from elements.portable.surface import Surface
from elements.pyinfer import PyInfer, register
from elements.pyinfer_options import PROPERTIES, resolve_options
from pipelines.runtime import load_runtime
from tests.onnx_models import NAMES, finder, picture, save
from tests.waiting import LIMIT_S

ROOT = Path(__file__).resolve().parents[2]
CAPS = "video/x-raw(memory:NVMM), format=RGB, width=640, height=640, framerate=10/1"
BOX = {0: (50.0, 40.0, 200.0, 120.0)}


@pytest.fixture
def model_path(tmp_path):
    return save(finder("yolov8", (320, 320), metadata={"names": str(list(NAMES))}), tmp_path / "finder.onnx")


class Harness:
    """Pushes batches into pyinfer and keeps what comes out."""

    def __init__(self, **properties):
        self.element = PyInfer()
        for name, value in properties.items():
            self.element.set_property(name.replace("_", "-"), value)
        self.pipeline = Gst.Pipeline.new()
        sink = Gst.ElementFactory.make("fakesink")
        sink.set_property("signal-handoffs", True)
        sink.set_property("async", False)
        sink.connect("handoff", lambda _sink, buffer, _pad: self.out.append(batch_of(buffer)))
        self.out = []
        self.pipeline.add(self.element)
        self.pipeline.add(sink)
        self.element.link(sink)
        self.sink = self.element.get_static_pad("sink")

    def __enter__(self):
        assert self.pipeline.set_state(Gst.State.PLAYING) != Gst.StateChangeReturn.FAILURE, self.error()
        segment = Gst.Segment()
        segment.init(Gst.Format.TIME)
        for event in (Gst.Event.new_stream_start("t"), Gst.Event.new_caps(caps(CAPS)), Gst.Event.new_segment(segment)):
            self.sink.send_event(event)
        return self

    def __exit__(self, *_):
        self.pipeline.set_state(Gst.State.NULL)

    def push(self, buffer):
        return self.sink.chain(buffer)

    def error(self):
        """Text and debug text of the bus error, if there is one."""
        message = self.pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
        if message is None:
            return None
        error, debug = message.parse_error()
        return error.message, debug

    def warning(self):
        """Text and debug text of the next bus warning, if there is one."""
        message = self.pipeline.get_bus().pop_filtered(Gst.MessageType.WARNING)
        if message is None:
            return None
        error, debug = message.parse_warning()
        return error.message, debug


def batch(*sources, number=0, size=(640, 360)):
    """A buffer with one frame per source id: ``size`` pictures padded to 640x640 as nvstreammux does."""
    made = BatchMeta(max_frames=len(sources))
    for index, source in enumerate(sources):
        surface = Surface.of_array(picture(*size, BOX, soft=2))
        placed = Placement.padded(size, (640, 640))
        target = (placed.left, placed.top, placed.left + placed.width, placed.top + placed.height)
        made.surfaces.append(surface.mapped(640, 640, "RGB", target=target))
        made.frames.append(FrameMeta(source, source, index, number, source_width=size[0], source_height=size[1]))
    return new_batch_buffer(made, 0, Gst.CLOCK_TIME_NONE)


class Failing:
    """A model of one's own: fails on frame 1 of source 5."""

    names = ("thing",)

    def __init__(self, config):
        self.config = config

    def load(self):
        self.closed = False

    def infer(self, frames):
        if any(frame.source_id == 5 and frame.frame_number == 1 for frame in frames):
            raise ValueError("no such luck")
        return [Detections(np.array([[0, 0, f.width, f.height]]), np.ones(1), np.zeros(1)) for f in frames]

    def close(self):
        self.closed = True


class Wrong(Failing):
    def infer(self, frames):
        return []


class AtOnce(Failing):
    def infer(self, frames):
        if len(frames) > 1:
            raise MemoryError("one at a time")
        return super().infer(frames)


OWN = f"{__name__}:Failing"


def test_objects_are_written_where_the_picture_lies(model_path):
    with Harness(model_path=model_path, unique_id=3) as run:
        assert run.push(batch(0, 1)) == Gst.FlowReturn.OK, run.error()
        for frame in run.out[0].frames:
            (found,) = frame.objects
            assert (found.label, found.unique_component_id, found.object_id) == ("red", 3, 2**64 - 1)
            rect = found.rect
            assert [rect.left, rect.top, rect.width, rect.height] == pytest.approx([50, 180, 150, 80], abs=1)
            assert frame.infer_done
        assert run.element.get_property("frames-inferred") == 2


def test_a_branch_of_a_tee_keeps_its_own_objects(model_path):
    with Harness(model_path=model_path) as run:
        buffer = batch(0)
        assert run.push(buffer.copy()) == Gst.FlowReturn.OK, run.error()
        assert len(run.out[0].frames[0].objects) == 1
        assert batch_of(buffer).frames[0].objects == []


def test_frames_hide_the_padding():
    (frame,) = frames_of(batch(4, number=9, size=(360, 640)))
    assert (frame.width, frame.height, frame.source_id, frame.frame_number) == (360, 640, 4, 9)
    np.testing.assert_allclose(frame.resized(360, 640), picture(360, 640, BOX, soft=2), atol=1)
    canvas = np.zeros((700, 400, 3), np.uint8)
    frame.resized(180, 320, out=canvas[10:330, 20:200])
    assert canvas[10 + 40, 20 + 60].tolist() == pytest.approx([255, 0, 0], abs=2)
    assert not canvas[:10].any()


def test_interval_is_counted_per_source(model_path):
    with Harness(model_path=model_path, interval=2) as run:
        for number in range(7):
            sources = (0,) if number == 0 else (0, 1)
            assert run.push(batch(*sources, number=number)) == Gst.FlowReturn.OK, run.error()
        done = [[frame.infer_done for frame in made.frames] for made in run.out]
        assert [d[0] for d in done] == [True, False, False, True, False, False, True]
        assert [d[1] for d in done[1:]] == [True, False, False, True, False, False]
        assert [len(made.frames[0].objects) for made in run.out] == [1, 0, 0, 1, 0, 0, 1]
        run.element.set_property("interval", 0)
        run.push(batch(0, 1))
        assert [frame.infer_done for frame in run.out[-1].frames] == [True, True]


def test_thresholds_change_while_running(model_path):
    with Harness(model_path=model_path, confidence_threshold=0.95) as run:
        run.push(batch(0))
        run.element.set_property("confidence-threshold", 0.5)
        run.push(batch(0))
        assert [len(made.frames[0].objects) for made in run.out] == [0, 1]


def test_other_changes_wait_for_the_next_start(model_path, caplog):
    with Harness(model_path=model_path) as run:
        run.element.set_property("layout", "yolox")
        assert "layout takes effect at the next start" in caplog.text


def test_options_from_a_file(model_path, tmp_path):
    config = tmp_path / "infer.yml"
    config.write_text(
        f"model: {Path(model_path).name}\nconfidence: 0.95\ninterval: 4\nclasses: [red]\nbatch-size: auto\n"
    )
    with Harness(config_file_path=str(config), interval=1) as run:
        assert run.element.get_property("confidence-threshold") == pytest.approx(0.95)
        assert run.element.get_property("interval") == 1  # the property wins
        run.push(batch(0))
        assert run.out[0].frames[0].objects == []


@pytest.mark.parametrize("as_file", [True, False])
def test_labels_from_a_file_or_a_list(tmp_path, as_file):
    (tmp_path / "labels.txt").write_text("rot\ngrün\nblau\n")
    path = save(finder("yolov8", (320, 320)), tmp_path / "finder.onnx")
    with Harness(model_path=path, labels=str(tmp_path / "labels.txt") if as_file else "rot, grün, blau") as run:
        run.push(batch(0))
        assert run.out[0].frames[0].objects[0].label == "rot"


def test_many_labels_in_place_are_no_path(tmp_path):
    """Longer than any file name may be; asking the file system about it is an error of its own."""
    path = save(finder("yolov8", (320, 320)), tmp_path / "finder.onnx")
    labels = [f"class with a long name {n:04}" for n in range(200)]
    options = resolve_options(
        {**{p.name: p.default for p in PROPERTIES}, "model-path": path, "labels": ",".join(labels)},
        {"model-path", "labels"},
    )
    assert options.model.labels == labels


def test_a_failing_model_stops_with_source_frame_and_trace():
    with Harness(model_path=OWN) as run:
        assert run.push(batch(5)) == Gst.FlowReturn.OK
        assert run.push(batch(5, number=1)) == Gst.FlowReturn.ERROR
        text, debug = run.error()
        assert run.element.get_name() in text
        assert "source 5, frame 1: ValueError: no such luck" in text
        assert "in infer" in debug
        assert "raise ValueError" in debug


def test_a_failing_model_is_skipped_and_counted():
    with Harness(model_path=OWN, on_error="skip") as run:
        for number in range(3):
            assert run.push(batch(4, 5, number=number)) == Gst.FlowReturn.OK
        assert [[len(f.objects) for f in made.frames] for made in run.out] == [[1, 1], [1, 0], [1, 1]]
        assert [f.infer_done for f in run.out[1].frames] == [True, False]
        assert run.element.get_property("frames-failed") == 1
        assert run.element.get_property("frames-inferred") == 5
        (text, debug) = run.warning()
        assert "source 5, frame 1: ValueError: no such luck" in text
        assert debug.count("Traceback") == 1
        assert run.warning() is None


def test_a_detection_model_names_the_one_frame(model_path, monkeypatch):
    finish = model.finish

    def fail_for_small(found, outputs, decoder, size, placement, *more):
        if placement.source_width == 64:
            raise ValueError("too small")
        return finish(found, outputs, decoder, size, placement, *more)

    monkeypatch.setattr(model, "finish", fail_for_small)
    with Harness(model_path=model_path) as run:
        assert run.push(batch(7, number=2, size=(64, 36))) == Gst.FlowReturn.ERROR
        text, _ = run.error()
        assert "source 7, frame 2: ValueError: too small" in text


def test_a_model_must_answer_for_each_frame():
    with Harness(model_path=f"{__name__}:Wrong") as run:
        assert run.push(batch(0)) == Gst.FlowReturn.ERROR
        assert "a list of one Detections per frame (1), not a list of 0" in run.error()[0]


@pytest.mark.parametrize("factory", ["pyinfer", "pyprompt"])
def test_rgba_on_the_pad_says_what_to_put_before(model_path, factory):
    load_runtime("portable")
    properties = f"model-path={model_path}" if factory == "pyinfer" else "endpoint=http://localhost:1 model=m text=t"
    pipeline = Gst.parse_launch(
        "videotestsrc num-buffers=1 ! video/x-raw,format=I420,width=64,height=48 ! nvvideoconvert ! mux.sink_0 "
        "nvstreammux name=mux batch-size=1 width=64 height=48 ! nvvideoconvert ! video/x-raw(memory:NVMM),format=RGBA "
        f"! {factory} name=it {properties} ! fakesink"
    )
    pipeline.set_state(Gst.State.PLAYING)
    ended = pipeline.get_bus().timed_pop_filtered(LIMIT_S * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    assert ended is not None
    assert ended.type == Gst.MessageType.ERROR
    assert ended.parse_error()[0].message == (
        "it: its pad has RGBA frames, and a model reads RGB: put nvvideoconvert and the capsfilter "
        "video/x-raw(memory:NVMM),format=RGB before this element"
    )


def test_a_buffer_without_a_batch_says_what_is_missing(model_path):
    with Harness(model_path=model_path) as run:
        assert run.push(Gst.Buffer.new_allocate(None, 64, None)) == Gst.FlowReturn.ERROR
        assert "put an nvstreammux before" in run.error()[0]


@pytest.mark.parametrize(
    ("properties", "parts"),
    [
        ({}, ["no model is given", "model-path"]),
        ({"model_path": "nowhere.onnx"}, ["model 'nowhere.onnx': there is no such file"]),
        ({"model_path": "a.onnx", "model_engine": "b.onnx"}, ["name two models"]),
        ({"model_path": "a.onnx", "on_error": "ignore"}, ["'ignore' is neither stop nor skip"]),
        ({"config_file_path": "nowhere.yml"}, ["config-file-path 'nowhere.yml'", "No such file"]),
    ],
)
def test_start_fails_with_a_bus_error(properties, parts):
    run = Harness(**properties)
    assert run.pipeline.set_state(Gst.State.PLAYING) == Gst.StateChangeReturn.FAILURE
    text, _ = run.error()
    for part in [run.element.get_name(), *parts]:
        assert part in text
    run.pipeline.set_state(Gst.State.NULL)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model: m.onnx\nconfidense: 1\n", "unknown key 'confidense': did you mean 'confidence'?"),
        ("- model\n", "expected lines like"),
        ("model: m.onnx\ntask: count\n", "task: 'count' is not one of auto, detect"),
        ("model: m.onnx\ninterval: often\n", "interval: 'often' is not a whole number"),
    ],
)
def test_a_bad_options_file(tmp_path, text, message):
    config = tmp_path / "infer.yml"
    config.write_text(text)
    run = Harness(config_file_path=str(config))
    assert run.pipeline.set_state(Gst.State.PLAYING) == Gst.StateChangeReturn.FAILURE
    assert message in run.error()[0]
    run.pipeline.set_state(Gst.State.NULL)


def test_restart_loads_again_and_counts_anew(model_path):
    run = Harness(model_path=model_path)
    for _ in range(2):
        with run:
            assert run.push(batch(0)) == Gst.FlowReturn.OK, run.error()
            assert run.element.get_property("frames-inferred") == 1


def test_registered_in_process():
    register()
    register()
    assert type(Gst.ElementFactory.make("pyinfer")).__name__ == "PyInfer"


def _inspect(tmp_path, plugins, **environment):
    tool = ["gst-inspect-1.0", "pyinfer"]
    variables = os.environ | {
        "GST_PLUGIN_PATH": str(plugins),
        "GST_REGISTRY": str(tmp_path / "registry.bin"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    return subprocess.run(tool, env=variables | environment, capture_output=True, text=True, timeout=60)


def test_found_by_the_plugin_loader(tmp_path):
    shown = _inspect(tmp_path, ROOT / "elements")
    assert shown.returncode == 0, shown.stderr
    for part in ("SINK template", "SRC template", "video/x-raw(memory:NVMM)", "confidence-threshold", "model-path"):
        assert part in shown.stdout
    assert "CRITICAL" not in shown.stderr


def test_the_stub_says_what_to_do_when_something_is_missing(tmp_path):
    """A stub in a tree whose package cannot be imported."""
    stubs = tmp_path / "elements" / "python"
    stubs.mkdir(parents=True)
    (stubs / "_el_pyinfer.py").write_bytes((ROOT / "elements/python/_el_pyinfer.py").read_bytes())
    (tmp_path / "elements" / "pyinfer.py").write_text(textwrap.dedent("import numpy_is_missing_here"))
    shown = _inspect(tmp_path, tmp_path / "elements", PYTHONPATH="")
    lines = [line for line in shown.stderr.splitlines() if line.startswith("gstorch:")]
    assert lines == [
        f"gstorch: pyinfer is not available (No module named 'numpy_is_missing_here'): "
        f"run 'source {tmp_path}/elements/env.sh' in this shell, then again"
    ]
    assert "Traceback" not in shown.stderr


def test_logs_nothing_per_frame(model_path, caplog):
    with Harness(model_path=model_path) as run:
        run.push(batch(0))
        caplog.clear()
        caplog.set_level(logging.INFO)
        for number in range(3):
            run.push(batch(0, number=number))
    assert caplog.text == ""
