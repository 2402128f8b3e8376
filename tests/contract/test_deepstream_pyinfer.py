"""pyinfer's DeepStream path: real batches in and out of the element, read back by a walk of the C structs."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from elements.base import Gst, caps
from elements.metadata.detections import Detections
from elements.portable.register import register_stand_ins
from elements.pyinfer import PyInfer
from tests.contract.nvds_double.native import SKIP

pytestmark = pytest.mark.skipif(bool(SKIP), reason=SKIP)
if not SKIP:
    from tests.contract import nvds_double
    from tests.contract.nvds_double.batches import FrameSpec, Surfaces
    from tests.contract.nvds_double.models import PATH, Scripted
    from tests.contract.nvds_double.walk import walk

ROOT = Path(__file__).resolve().parents[2]
CAPS = "video/x-raw(memory:NVMM), format=RGB, width=64, height=64, framerate=25/1"
UNTRACKED = 2**64 - 1


@pytest.fixture(autouse=True)
def deepstream(monkeypatch):
    """NVIDIA's pyservicemaker, as far as it can be had."""
    monkeypatch.setitem(sys.modules, "pyservicemaker", nvds_double)
    monkeypatch.setattr(Scripted, "find", staticmethod(lambda frame: Detections()))
    monkeypatch.setattr(Scripted, "names", ("car", "person"))


class Run:
    """A pipeline with pyinfer; `push` gives what left the element, as plain data."""

    def __init__(self, padded=None, **properties):
        self.pipeline = Gst.Pipeline.new()
        self.element = PyInfer()
        for name, value in {"model-path": PATH, "unique-id": 3, **properties}.items():
            self.element.set_property(name, value)
        sink = Gst.ElementFactory.make("fakesink")
        sink.set_property("signal-handoffs", True)
        sink.set_property("async", False)
        sink.connect("handoff", lambda _sink, buffer, _pad: self.out.append(walk(buffer)))
        self.out = []
        for each in (self.element, sink):
            self.pipeline.add(each)
        self.element.link(sink)
        if padded is not None:
            self._add_mux(padded)

    def _add_mux(self, padded):
        """A stream mux for the element to look at; the test makes the batches itself."""
        register_stand_ins()
        mux = Gst.ElementFactory.make("nvstreammux")
        mux.set_property("enable-padding", padded)
        mux.set_locked_state(True)
        self.pipeline.add(mux)

    def __enter__(self):
        assert self.pipeline.set_state(Gst.State.PLAYING) != Gst.StateChangeReturn.FAILURE, self.error()
        segment = Gst.Segment()
        segment.init(Gst.Format.TIME)
        for event in (Gst.Event.new_stream_start("t"), Gst.Event.new_caps(caps(CAPS)), Gst.Event.new_segment(segment)):
            self.element.get_static_pad("sink").send_event(event)
        return self

    def __exit__(self, *_):
        self.pipeline.set_state(Gst.State.NULL)

    def push(self, buffer):
        assert self.element.get_static_pad("sink").chain(buffer) == Gst.FlowReturn.OK, self.error()
        return self.out[-1]

    def error(self):
        message = self.pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
        return message.parse_error()[0].message if message else None


def surfaces(frames=1, size=(64, 64), source=(64, 64), **more):
    picture = np.zeros((size[1], size[0], 3), np.uint8)
    return Surfaces([FrameSpec(picture, source, i, 7) for i in range(frames)], **more)


def found(monkeypatch, find):
    monkeypatch.setattr(Scripted, "find", staticmethod(find))


def boxes(n):
    """``n`` objects in a row; the i-th begins at (i, i)."""
    corners = np.arange(n, dtype=np.float32)[:, None] + np.array([0, 0, 4, 2], np.float32)
    return Detections(corners, np.linspace(0.25, 0.75, n), np.arange(n) % 2)


def objects_of(monkeypatch, detections, **more):
    """What is on one frame after the element, in the order of the detections, after the buffer was copied once.

    The test's own reference to the buffer makes GStreamer copy it, and copying reverses DeepStream's newest-first list.
    """
    found(monkeypatch, lambda frame: detections)
    pictures = surfaces()
    with Run(**more) as run:
        (frame,) = run.push(pictures.buffer())["frames"]
    return frame["objects"][::-1]


# --- objects ----------------------------------------------------------------------------------------------------------


def test_every_field_of_an_object(monkeypatch):
    detections = Detections(np.array([[10, 20, 40, 30]]), np.array([0.75]), np.array([1]))
    (item,) = objects_of(monkeypatch, detections)
    assert (item["class_id"], item["label"], item["component_id"], item["confidence"]) == (1, "person", 3, 0.75)
    assert item["object_id"] == UNTRACKED
    assert item["rect"] == item["detector_box"] == (10, 20, 30, 10)
    assert (item["border_width"], item["border_color"], item["has_bg_color"]) == (3, (1, 0, 0, 1), 0)
    assert item["rotation_angle"] == 0
    assert (item["display_text"], item["text_offset"], item["font"]) == ("person", (10, 10), ("Serif", 11))
    assert (item["mask"], item["classifiers"], item["user"], item["parent"]) == (None, [], [], 0)


@pytest.mark.parametrize("count", [0, 1, 500])
def test_numbers_of_objects(monkeypatch, count):
    items = objects_of(monkeypatch, boxes(count))
    assert [item["rect"] for item in items] == [(i, i, 4, 2) for i in range(count)]
    assert [item["display_text"] for item in items] == [("car", "person")[i % 2] for i in range(count)]
    assert len({item["at"] for item in items}) == count


def test_sixteen_frames_each_with_its_own(monkeypatch):
    found(monkeypatch, lambda frame: boxes(frame.source_id))
    pictures = surfaces(16)
    with Run() as run:
        frames = run.push(pictures.buffer())["frames"]
    assert {frame["source_id"]: len(frame["objects"]) for frame in frames} == {i: i for i in range(16)}
    assert all(frame["infer_done"] == 1 for frame in frames)


def test_a_batch_that_is_not_full(monkeypatch):
    found(monkeypatch, lambda frame: boxes(2))
    pictures = surfaces(3)
    with Run() as run:
        batch = run.push(pictures.buffer(max_frames=16))
    assert (batch["max_frames"], len(batch["frames"]), batch["pools"]["object"]) == (16, 3, 6)


def test_frames_that_are_not_due_are_left_alone(monkeypatch):
    found(monkeypatch, lambda frame: boxes(1))
    pictures = surfaces()
    with Run(interval=1) as run:
        marks = [run.push(pictures.buffer())["frames"][0]["infer_done"] for _ in range(4)]
    assert marks == [1, 0, 1, 0]


@pytest.mark.parametrize(
    ("label", "kept"),
    [
        ("a" * 127, "a" * 127),
        ("a" * 128, "a" * 127),
        ("a" * 300, "a" * 127),
        ("ß" * 64, "ß" * 63),
        ("行人" * 30, ("行人" * 30)[:42]),
        ("مشاة", "مشاة"),
        ("red\0 car", "red"),
        ("", ""),
    ],
)
def test_labels(monkeypatch, label, kept):
    monkeypatch.setattr(Scripted, "names", (label,))
    (item,) = objects_of(monkeypatch, Detections(np.array([[1, 1, 9, 9]]), np.ones(1), np.zeros(1)))
    assert item["label"] == item["display_text"] == kept


def test_rotation_in_degrees(monkeypatch):
    turned = Detections(
        np.array([[10, 20, 40, 30]] * 2), np.ones(2), np.zeros(2), angles=np.array([math.pi / 6, 0], np.float32)
    )
    angles = [item["rotation_angle"] for item in objects_of(monkeypatch, turned)]
    assert angles == [pytest.approx(30, abs=1e-4), 0]


def test_masks_are_cut_to_the_boxes(monkeypatch):
    masks = np.zeros((2, 64, 64), bool)
    masks[0, 20:25, 10:20] = True  # the upper left of its box
    masked = Detections(np.array([[10, 20, 40, 30], [70, 70, 90, 90]]), np.ones(2), np.zeros(2), masks=masks)
    inside, outside = objects_of(monkeypatch, masked)
    threshold, mask = inside["mask"]
    assert (threshold, mask.shape) == (0.5, (10, 30))
    assert mask[:5, :10].min() == 1
    assert mask.sum() == 50
    assert outside["mask"] is None


def test_attributes_become_classifiers(monkeypatch):
    attributes = [{"colour": "red", "kind": {"label": "行" * 60, "class_id": 4, "probability": 0.5}}, {}]
    classified = Detections(np.array([[10, 20, 40, 30]] * 2), np.ones(2), np.zeros(2), attributes=attributes)
    first, second = objects_of(monkeypatch, classified)
    labels = [label for classifier in first["classifiers"] for label in classifier["labels"]]
    assert sorted(labels) == [("red", 0, 1.0), ("行" * 60, 4, 0.5)]
    assert {classifier["component_id"] for classifier in first["classifiers"]} == {3}
    assert second["classifiers"] == []


# --- pictures ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pitch", [0, 512])
def test_the_model_sees_the_source_without_the_padding(monkeypatch, pitch):
    """A 64x32 source, red left and blue right, padded to 64x64 with green that no model must see."""
    rows = np.zeros((64, max(pitch, 64 * 3)), np.uint8)
    picture = np.lib.stride_tricks.as_strided(rows, (64, 64, 3), (rows.strides[0], 3, 1))
    picture[:] = (0, 255, 0)
    picture[16:48, :32], picture[16:48, 32:] = (255, 0, 0), (0, 0, 255)
    seen = []

    def look(frame):
        seen.append((frame.width, frame.height, frame.frame_number, frame.pts, frame.resized(8, 4)))
        return Detections(np.array([[0, 0, 64, 32]]), np.ones(1), np.zeros(1))

    found(monkeypatch, look)
    pictures = Surfaces([FrameSpec(picture, (64, 32), 5, 7)])
    with Run(padded=True) as run:
        (frame,) = run.push(pictures.buffer())["frames"]
    (width, height, number, pts, small) = seen[0]
    assert (width, height, number, pts) == (64, 32, 7, 280_000_000)
    assert small[:, :4].tolist() == [[[255, 0, 0]] * 4] * 4
    assert small[:, 4:].tolist() == [[[0, 0, 255]] * 4] * 4
    assert frame["objects"][0]["rect"] == (0, 16, 64, 32)


def test_a_mux_that_stretches(monkeypatch):
    found(monkeypatch, lambda frame: Detections(np.array([[0, 0, 128, 36]]), np.ones(1), np.zeros(1)))
    pictures = surfaces(source=(128, 72))
    with Run(padded=False) as run:
        (frame,) = run.push(pictures.buffer())["frames"]
    assert frame["objects"][0]["rect"] == (0, 0, 64, 32)


def test_pictures_that_are_not_rgb(monkeypatch):
    found(monkeypatch, lambda frame: frame.resized(8, 8))
    pictures = surfaces(color=19)  # RGBA
    with Run() as run, pytest.raises(AssertionError, match=r"format=RGB before this element"):
        run.push(pictures.buffer())


def test_a_buffer_without_a_batch():
    with Run() as run, pytest.raises(AssertionError, match="put an nvstreammux before"):
        run.push(Gst.Buffer.new_wrapped(bytes(72)))


# --- long runs --------------------------------------------------------------------------------------------------------

MANY = """
    import sys
    import numpy as np
    from elements.base import Gst
    Gst.init(None)
    from tests.contract import nvds_double
    from tests.contract.nvds_double.batches import FrameSpec, Surfaces
    from tests.contract.nvds_double.models import PATH, Scripted
    sys.modules["pyservicemaker"] = nvds_double
    from elements.metadata.detections import Detections
    from elements.metadata.edit import attach_json, remove_objects
    from elements.pyinfer import PyInfer

    answer = Detections(
        np.array([[4, 4, 20, 12], [8, 8, 60, 40]]), np.ones(2), np.zeros(2), angles=np.ones(2, np.float32),
        masks=np.ones((2, 64, 64), bool), attributes=[{"colour": "red"}, {"kind": "long " * 40}],
    )
    Scripted.find = staticmethod(lambda frame: answer)
    pictures = Surfaces([FrameSpec(np.zeros((64, 64, 3), np.uint8), (64, 64))])
    element = PyInfer()
    element.set_property("model-path", PATH)
    assert element.do_start()

    def one(copied):
        buffer = pictures.buffer()
        assert element.do_transform_ip(buffer) == Gst.FlowReturn.OK
        batch = nvds_double.Buffer(buffer).batch_meta
        attach_json(batch, "run", {"note": "x" * 200})
        for frame in batch.frame_items:
            attach_json(frame, "seen", [1, 2, 3])
            for item in frame.object_items:
                attach_json(item, "more", "y" * 100)
            assert remove_objects(frame, lambda item: item.rect_params.left == 4) == 1
        if copied:
            buffer.copy_deep()

    def resident_kib():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * 4

    for i in range(1000):
        one(i % 4 == 0)
    before = resident_kib()
    for i in range({count}):
        one(i % 4 == 0)
    print(resident_kib() - before)
"""


def in_a_process_of_its_own(script):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], cwd=ROOT, capture_output=True, text=True, timeout=300
    )


def test_many_buffers_do_not_grow_the_process():
    """4,000, or as many as GSTORCH_BUFFERS says: 50,000 grew it by 44 KiB in a minute."""
    done = in_a_process_of_its_own(MANY.replace("{count}", os.environ.get("GSTORCH_BUFFERS", "4000")))
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[-1]) < 128  # KiB; 80 bytes lost per buffer show as 188
