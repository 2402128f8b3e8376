"""The peer: a careful loop as an engineer would write it without a pipeline framework.

PyAV decodes each source on a thread of its own, ONNX Runtime uses all cores, ByteTrack follows, supervision draws,
x264 encodes the tiled picture. Same model, files, confidence and outputs as gstorch. Prints one JSON line.
"""

from __future__ import annotations

import argparse
import json
import math
import queue
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import cv2
import numpy as np
import onnxruntime
import supervision as sv
from trackers import ByteTrackTracker

STRIDES = (8, 16, 32)


class Yolox:
    """YOLOX raw grid: letterbox to the top left, BGR 0-255, grid decode, class-aware NMS."""

    def __init__(self, path: str, confidence: float, iou: float) -> None:
        self.session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        node = self.session.get_inputs()[0]
        self.name, self.size = node.name, int(node.shape[2])
        self.confidence, self.iou = confidence, iou
        grids, steps = [], []
        for stride in STRIDES:
            cells = self.size // stride
            ys, xs = np.mgrid[:cells, :cells]
            grids.append(np.stack([xs, ys], -1).reshape(-1, 2))
            steps.append(np.full((cells * cells, 1), stride))
        self.grid, self.step = np.concatenate(grids), np.concatenate(steps)

    def __call__(self, frame: np.ndarray) -> sv.Detections:
        height, width = frame.shape[:2]
        scale = min(self.size / height, self.size / width)
        resized = cv2.resize(frame, (round(width * scale), round(height * scale)))
        canvas = np.full((self.size, self.size, 3), 114, np.uint8)
        canvas[: resized.shape[0], : resized.shape[1]] = resized
        blob = np.ascontiguousarray(canvas.transpose(2, 0, 1)[None]).astype(np.float32)
        rows = self.session.run(None, {self.name: blob})[0][0]
        scores = rows[:, 5:] * rows[:, 4:5]
        classes = scores.argmax(1)
        best = scores[np.arange(len(scores)), classes]
        keep = best >= self.confidence
        rows, classes, best = rows[keep], classes[keep], best[keep]
        centre = (rows[:, :2] + self.grid[keep]) * self.step[keep] / scale
        size = np.exp(rows[:, 2:4]) * self.step[keep] / scale
        boxes = np.concatenate([centre - size / 2, centre + size / 2], 1)
        found = sv.Detections(xyxy=boxes.clip(0, [width, height] * 2), confidence=best, class_id=classes)
        return found.with_nms(self.iou)


def decode(path: str, frames: queue.Queue[Any]) -> None:
    with av.open(path) as container:
        stream = container.streams.video[0]
        stream.thread_count = 1
        for frame in container.decode(stream):
            frames.put((float(frame.time or 0), frame.to_ndarray(format="bgr24")))
    frames.put(None)


def rounds(paths: list[str]) -> Iterator[list[tuple[int, float, np.ndarray]]]:
    """One frame of each source that still runs."""
    queues: list[queue.Queue[Any]] = [queue.Queue(4) for _ in paths]
    for path, frames in zip(paths, queues, strict=True):
        threading.Thread(target=decode, args=(path, frames), daemon=True).start()
    open_sources = set(range(len(paths)))
    while open_sources:
        batch = []
        for index in sorted(open_sources):
            item = queues[index].get()
            if item is None:
                open_sources.discard(index)
            else:
                batch.append((index, *item))
        if batch:
            yield batch


class TiledVideo:
    """Draws, tiles and encodes."""

    def __init__(self, path: str, sources: int, size: tuple[int, int]) -> None:
        self.columns = math.ceil(math.sqrt(sources))
        self.rows = math.ceil(sources / self.columns)
        self.width, self.height = size
        self.canvas = np.zeros((self.height, self.width, 3), np.uint8)
        self.container = av.open(path, "w")
        self.stream = self.container.add_stream("libx264", rate=Fraction(25), options={"preset": "veryfast"})
        self.stream.width, self.stream.height, self.stream.pix_fmt = *size, "yuv420p"
        self.stream.bit_rate = 4_000_000
        self.boxes, self.labels = sv.BoxAnnotator(), sv.LabelAnnotator()

    def draw(self, index: int, frame: np.ndarray, found: sv.Detections) -> None:
        frame = self.boxes.annotate(frame, found)
        texts = [f"{c} #{t}" for c, t in zip(found.class_id, found.tracker_id, strict=True)]
        frame = self.labels.annotate(frame, found, texts)
        row, column = divmod(index, self.columns)
        width, height = self.width // self.columns, self.height // self.rows
        tile = self.canvas[row * height : (row + 1) * height, column * width : (column + 1) * width]
        cv2.resize(frame, (width, height), dst=tile)

    def write(self) -> None:
        for packet in self.stream.encode(av.VideoFrame.from_ndarray(self.canvas, "bgr24")):
            self.container.mux(packet)

    def close(self) -> None:
        for packet in self.stream.encode():
            self.container.mux(packet)
        self.container.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", nargs="+")
    parser.add_argument("--model", required=True)
    parser.add_argument("--events", required=True)
    parser.add_argument("--output")
    parser.add_argument("--size", default="1280x720")
    parser.add_argument("--confidence", type=float, default=0.35)
    options = parser.parse_args()

    started, cpu_started = time.monotonic(), time.process_time()
    model = Yolox(options.model, options.confidence, 0.45)
    trackers = [ByteTrackTracker() for _ in options.sources]
    width, height = (int(v) for v in options.size.split("x"))
    video = TiledVideo(options.output, len(options.sources), (width, height)) if options.output else None
    counts, first_result = [0] * len(options.sources), None
    with Path(options.events).open("w", encoding="utf-8") as events:
        for batch in rounds(options.sources):
            for index, seconds, frame in batch:
                found = trackers[index].update(model(frame))
                objects = [
                    {"bbox": [round(float(v), 2) for v in box], "class_id": int(c), "track_id": int(t)}
                    for box, c, t in zip(found.xyxy, found.class_id, found.tracker_id, strict=True)
                ]
                line = {"source_id": index, "frame": counts[index], "stream_time_s": seconds, "objects": objects}
                events.write(json.dumps(line) + "\n")
                counts[index] += 1
                if video:
                    video.draw(index, frame, found)
            first_result = first_result or time.monotonic() - started
            if video:
                video.write()
    if video:
        video.close()
    print(
        json.dumps(
            {
                "frames": sum(counts),
                "seconds": time.monotonic() - started,
                "first_result_s": first_result,
                "cpu_seconds": time.process_time() - cpu_started,
            }
        )
    )


if __name__ == "__main__":
    main()
