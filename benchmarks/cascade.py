"""What a classifier on the objects of every frame costs, against one batched call of the bare model.

    python -m benchmarks.cascade [--objects 40] [--side 128] [--width 0.5] [--rounds 15]

The bare call has its input ready and uses all cores. The stage gets a 1080p frame as the decoder leaves it (I420) with
objects of all sizes in its metadata; its time is that of the whole element: reading the metadata, cutting the crops out
of the planes, scaling, the model, and writing the labels. Both run in turn; medians of times and of the ratios of
calls that follow each other. CPU is that of all threads. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import elements  # noqa: F401  before anything loads GStreamer
from elements.base import Gst, GstBase, caps, sink_and_src

Gst.init(None)
from elements.portable.carrier import batch_of, new_batch_buffer  # noqa: E402
from elements.portable.meta import BatchMeta, FrameMeta, ObjectMeta  # noqa: E402
from elements.portable.surface import Surface  # noqa: E402
from elements.portable.video_buffer import VideoLayout, new_video_buffer  # noqa: E402
from elements.pyinfer import PyInfer  # noqa: E402

FRAME = (1920, 1080)
CAPS = f"video/x-raw(memory:NVMM), format=RGB, width={FRAME[0]}, height={FRAME[1]}, framerate=25/1"
CLASSES = tuple(f"class {n}" for n in range(10))
Times = np.ndarray
SETTLE_S = 0.1  # ONNX Runtime's threads spin on after a call, which the stage must not pay for
BLOCKS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1))
"""Channels and strides of MobileNet's blocks (Howard et al. 2017, table 1) at width 1."""


def network(side: int, width: float) -> onnx.ModelProto:
    """A MobileNet with random weights: (B, 3, side, side) to (B, 10) probabilities."""
    rng = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []

    def convolve(source: str, inputs: int, outputs: int, kernel: int, stride: int, groups: int = 1) -> str:
        name = f"c{len(nodes)}"
        shape = (outputs, inputs // groups, kernel, kernel)
        value = rng.normal(0, (2 / np.prod(shape[1:])) ** 0.5, shape).astype(np.float32)
        weights.append(numpy_helper.from_array(value, f"{name}w"))
        edge = [kernel // 2] * 4
        nodes.append(
            helper.make_node("Conv", [source, f"{name}w"], [name], pads=edge, strides=[stride] * 2, group=groups)
        )
        nodes.append(helper.make_node("Relu", [name], [f"{name}r"]))
        return f"{name}r"

    channels = round(32 * width)
    last = convolve("image", 3, channels, 3, 2)
    for wanted, stride in BLOCKS:
        last = convolve(last, channels, channels, 3, stride, groups=channels)
        last = convolve(last, channels, round(wanted * width), 1, 1)
        channels = round(wanted * width)
    head = rng.normal(0, 0.01, (channels, len(CLASSES))).astype(np.float32)
    weights.append(numpy_helper.from_array(head, "head"))
    nodes += [
        helper.make_node("GlobalAveragePool", [last], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("MatMul", ["flat", "head"], ["logits"]),
        helper.make_node("Softmax", ["logits"], ["output"], axis=1),
    ]
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, side, side])
    output = helper.make_tensor_value_info("output", TensorProto.FLOAT, ["batch", len(CLASSES)])
    graph = helper.make_graph(nodes, "mobilenet", [image], [output], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    for key, value in {"task": "classify", "names": str(list(CLASSES))}.items():
        model.metadata_props.add(key=key, value=value)
    return model


def bare_call(path: str, objects: int, side: int) -> Callable[[], object]:
    """One run of ONNX Runtime with its own choice of threads on a batch that is ready."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    batch = np.random.default_rng(0).random((objects, 3, side, side), np.float32)
    return lambda: session.run(None, {"image": batch})


class Objects(GstBase.BaseTransform):
    """Makes of every buffer a batch of one frame whose metadata has objects; calls ``before`` first."""

    __gtype_name__ = "BenchmarkObjects"
    __gstmetadata__ = ("objects", "Generic", "frames with objects", "benchmarks")
    __gsttemplates__ = sink_and_src("ANY", CAPS)
    before: Callable[[], None]

    def __init__(self, objects: int) -> None:
        super().__init__()
        rng = np.random.default_rng(1)
        self._layout = VideoLayout.of("I420", *FRAME)
        self._frame, picture = new_video_buffer(self._layout)
        picture.write_rgb(rng.integers(0, 256, (FRAME[1], FRAME[0], 3), np.uint8))
        self._boxes = [
            (rng.uniform(0, FRAME[0] - 330), rng.uniform(0, FRAME[1] - 330), *rng.uniform(40, 320, 2))
            for _ in range(objects)
        ]
        self._number = 0

    def do_transform_caps(self, _direction: Gst.PadDirection, _caps: Gst.Caps, _filter: Gst.Caps) -> Gst.Caps:
        return caps(CAPS if _direction == Gst.PadDirection.SINK else "ANY")

    def do_prepare_output_buffer(self, _buffer: Gst.Buffer) -> tuple[Gst.FlowReturn, Gst.Buffer]:
        self.before()
        number, self._number = self._number, self._number + 1
        meta = FrameMeta(0, 0, 0, number, number * 40_000_000, source_width=FRAME[0], source_height=FRAME[1])
        for place, (left, top, width, height) in enumerate(self._boxes):
            item = ObjectMeta(object_id=number * len(self._boxes) + place, unique_component_id=1, label="thing")
            item.rect.left, item.rect.top, item.rect.width, item.rect.height = left, top, width, height
            meta.objects.append(item)
        surface = Surface.of_buffer(self._frame, self._layout)
        batch = BatchMeta(1, [meta], [surface])
        return Gst.FlowReturn.OK, new_batch_buffer(batch, meta.buffer_pts, 40_000_000)

    def do_transform(self, _input: Gst.Buffer, _output: Gst.Buffer) -> Gst.FlowReturn:
        return Gst.FlowReturn.OK


def now() -> Times:
    """Seconds by the clock, and of CPU in all threads."""
    return np.array([time.perf_counter(), time.process_time()])


def measure(path: str, objects: int, side: int, rounds: int) -> dict[str, float]:
    """Medians in milliseconds, and the median of the ratios of calls that follow each other."""
    bare, source, stage = bare_call(path, objects, side), Objects(objects), PyInfer()
    properties = {"model-path": path, "operate-on": '{"id": 1}', "unique-id": 2, "confidence-threshold": 0.0}
    for name, value in properties.items():
        stage.set_property(name, value)
    pipeline, buffers, sink = Gst.Pipeline.new(), *(Gst.ElementFactory.make(name) for name in ("fakesrc", "fakesink"))
    buffers.set_property("num-buffers", rounds + 1)
    for element in (buffers, source, stage, sink):
        pipeline.add(element)
    assert buffers.link(source) and source.link(stage) and stage.link(sink), "cannot link"
    called: list[tuple[Times, Times]] = []
    entered: list[Times] = []
    left: list[Times] = []
    labels = 0

    def call_bare() -> None:
        started = now()
        bare()
        called.append((started, now()))
        time.sleep(SETTLE_S)

    def on_left(_pad: Gst.Pad, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        nonlocal labels
        left.append(now())
        batch = batch_of(info.get_buffer())
        assert batch is not None
        labels += sum(len(item.classifiers) for frame in batch.frames for item in frame.objects)
        return Gst.PadProbeReturn.OK

    def on_entered(_pad: Gst.Pad, _info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        entered.append(now())
        return Gst.PadProbeReturn.OK

    source.before = call_bare
    stage.get_static_pad("sink").add_probe(Gst.PadProbeType.BUFFER, on_entered)
    stage.get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, on_left)
    pipeline.set_state(Gst.State.PLAYING)
    message = pipeline.get_bus().timed_pop_filtered(Gst.CLOCK_TIME_NONE, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    assert message.type == Gst.MessageType.EOS, message.parse_error()
    assert labels == objects * (rounds + 1), "not every object was classified"
    bare_s = np.array([after - before for before, after in called[1:]])  # the first calls warm up
    stage_s = np.array([after - before for before, after in zip(entered[1:], left[1:], strict=True)])
    medians = 1000 * np.median(bare_s, axis=0), 1000 * np.median(stage_s, axis=0)
    ratio = np.median(stage_s / bare_s, axis=0)
    values = (*medians[0], *medians[1], *ratio)
    names = ("bare_ms", "bare_cpu_ms", "stage_ms", "stage_cpu_ms", "ratio", "cpu_ratio")
    return {name: round(float(value), 2) for name, value in zip(names, values, strict=True)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=40)
    parser.add_argument("--side", type=int, default=128, help="of the model's input, pixels")
    parser.add_argument("--width", type=float, default=0.5, help="of the network; 1 is MobileNet")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "classifier.onnx")
        cv2.setNumThreads(1)  # as a run does
        onnx.save(network(options.side, options.width), path)
        print(json.dumps({**vars(options), **measure(path, options.objects, options.side, options.rounds)}))


if __name__ == "__main__":
    main()
