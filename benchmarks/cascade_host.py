"""What a stage on the objects of another costs on the host per object, without pixels and without a network.

    python -m benchmarks.cascade_host [--objects 40] [--frames 1] [--rounds 400]

A classifier that answers at once, on batches of 1080p frames whose objects are all new tracks, the most work there is.
Each step is what `pyinfer` does with a batch, on one thread; its CPU time counts, since others work on the machine.
Prints one JSON object: median and least microseconds per object.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from unittest import mock

import numpy as np

import elements  # noqa: F401  before anything loads GStreamer
from elements.base import Gst

Gst.init(None)
from elements.api import pyservicemaker  # noqa: E402
from elements.inference.cascade import OperateOn  # noqa: E402
from elements.inference.config import ModelConfig  # noqa: E402
from elements.inference.crops import sizes_of  # noqa: E402
from elements.inference.frame import Frame  # noqa: E402
from elements.inference.session import Session  # noqa: E402
from elements.metadata.batch_detections import BatchDetections  # noqa: E402
from elements.metadata.detections import Detections  # noqa: E402
from elements.objects_at_work import ObjectsAtWork, Said  # noqa: E402
from elements.portable.carrier import new_batch_buffer  # noqa: E402
from elements.portable.frames import frames_of  # noqa: E402
from elements.portable.meta import BatchMeta, FrameMeta, ObjectMeta  # noqa: E402
from elements.portable.surface import Surface  # noqa: E402

FRAME = (1920, 1080)
PERIOD_NS = 40_000_000
STEPS = ("frames", "plan", "submit", "collect", "write")


class Instant:
    """A classifier that says the same of everything."""

    names = ("thing",)
    task = "classify"

    def load(self) -> None:
        """Nothing to load."""

    def infer(self, frames: Sequence[Frame]) -> BatchDetections:
        """As `finish_whole` gives it."""
        count = len(frames)
        boxes = np.zeros((count, 4), np.float32)
        boxes[:, 2:] = sizes_of(frames)
        rows = Detections(boxes, np.ones(count, np.float32), np.zeros(count, np.int64))
        return BatchDetections(rows, np.ones(count, np.int64))

    def close(self) -> None:
        """Nothing to free."""


def batch(number: int, frames: int, objects: int, surface: Surface) -> Gst.Buffer:
    """``frames`` frames of as many sources; ``objects`` objects spread over them."""
    rng = np.random.default_rng(number)
    metas = [
        FrameMeta(source, source, source, number, number * PERIOD_NS, source_width=FRAME[0], source_height=FRAME[1])
        for source in range(frames)
    ]
    for place in range(objects):
        item = ObjectMeta(object_id=number * objects + place, unique_component_id=1, label="thing")
        item.rect.left, item.rect.top = rng.uniform(0, 1500), rng.uniform(0, 700)
        item.rect.width, item.rect.height = rng.uniform(40, 320, 2)
        metas[place % frames].objects.append(item)
    return new_batch_buffer(BatchMeta(frames, metas, [surface] * frames), number * PERIOD_NS, PERIOD_NS)


def measure(objects: int, frames: int, rounds: int) -> dict[str, list[float]]:
    """CPU seconds of each step, batch by batch."""
    with mock.patch("elements.inference.swap.served.open_model", lambda config: Instant()):
        session = Session(ModelConfig("benchmarks.cascade_host:Instant", task="classify"))
        session.open()
    at_work = ObjectsAtWork(OperateOn(1), Said("classify", "colour", 2), pyservicemaker())
    surface = Surface.of_array(np.zeros((FRAME[1], FRAME[0], 3), np.uint8))
    times: dict[str, list[float]] = {step: [] for step in STEPS}
    for number in range(rounds):
        buffer = batch(number, frames, objects, surface)
        marks = [time.thread_time()]
        pictures = frames_of(buffer)
        marks.append(time.thread_time())
        work = at_work.plan(buffer, pictures, set(range(frames)))
        marks.append(time.thread_time())
        pending = session.submit(work.pictures)
        marks.append(time.thread_time())
        found = session.collect_groups(pending)
        marks.append(time.thread_time())
        at_work.write(buffer, work, found)
        marks.append(time.thread_time())
        for step, started, ended in zip(STEPS, marks[:-1], marks[1:], strict=True):
            times[step].append(ended - started)
    session.close()
    return times


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, default=40)
    parser.add_argument("--frames", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=400)
    options = parser.parse_args()
    times = measure(options.objects, options.frames, options.rounds)
    times["all"] = np.sum(list(times.values()), axis=0).tolist()
    figures = {
        name: [round(1e6 * float(of(own)) / options.objects, 2) for of in (np.median, np.min)]
        for name, own in times.items()
    }
    print(json.dumps({**vars(options), "us_per_object_median_and_least": figures}))


if __name__ == "__main__":
    main()
