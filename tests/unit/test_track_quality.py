"""How well the default tracker does on detections with noise: the truth is known, so HOTA can be told."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from elements.portable.meta import FrameMeta, ObjectMeta
from elements.portable.tracking.config import TrackerConfig
from elements.portable.tracking.objects import SourceObjects
from elements.portable.tracking.tracker import SourceTracker
from pipelines.evaluation import Annotations, evaluate, read_truth
from pipelines.evaluation.annotations import Row, Sequence

DEMO = Path(__file__).resolve().parents[2] / "out" / "demo" / "truth"
JITTER, MISSED, FALSE = 0.03, 0.05, 0.2  # of a side; of the detections; per frame
VISIBLE = 0.35
FRAMES = 100


def tracked(frames: Iterable[list[Row]], size: tuple[int, int], fps: float, seed: int = 1) -> Sequence:
    """The tracker's output for detections made of true objects: with noise, misses and false ones."""
    random = np.random.default_rng(seed)
    names: list[str] = []
    objects, result = SourceObjects(SourceTracker(TrackerConfig()), display_id=False), Sequence(size=size)
    for number, rows in enumerate(frames):
        frame = FrameMeta(pipeline_width=size[0], pipeline_height=size[1], infer_done=True)
        found = [row for row in rows if not row.ignore and random.random() >= MISSED]
        for _ in range(random.poisson(FALSE)):
            x, y = random.uniform(0, 0.9, 2) * size
            found.append(Row("person", (x, y, x + 20, y + 50)))
        for row in found:
            if row.label not in names:
                names.append(row.label)
            width, height = row.box[2] - row.box[0], row.box[3] - row.box[1]
            x1, y1, x2, y2 = np.array(row.box) + random.normal(0, JITTER, 4) * [width, height, width, height]
            item = ObjectMeta(class_id=names.index(row.label), label=row.label, confidence=random.uniform(0.3, 0.95))
            item.rect.left, item.rect.top, item.rect.width, item.rect.height = x1, y1, max(1, x2 - x1), max(1, y2 - y1)
            frame.objects.append(item)
        objects.process(frame, number / fps)
        result.frames[number] = [
            Row(
                item.label,
                (
                    item.rect.left,
                    item.rect.top,
                    item.rect.left + item.rect.width,
                    item.rect.top + item.rect.height,
                ),
                item.confidence,
                item.object_id,
            )
            for item in frame.objects
        ]
    return result


def crowd(frames: int, people: int = 14, size: tuple[int, int] = (640, 360)) -> Iterator[list[Row]]:
    """People who walk both ways at different depths, one before the other; who is hidden need not be found."""
    random = np.random.default_rng(5)
    depth = np.linspace(0.4, 1, people)
    start, speed = random.uniform(0, size[0], people), random.uniform(1, 3, people) * random.choice([-1, 1], people)
    for n in range(frames):
        boxes = []
        for k in range(people):
            height = 110 * depth[k]
            x = (start[k] + speed[k] * depth[k] * n + 40) % (size[0] + 80) - 40
            bottom = 120 + 220 * depth[k]
            boxes.append((x - height / 6, bottom - height, x + height / 6, bottom))
        yield [Row("person", box, track_id=k, ignore=hidden(box, boxes[k + 1 :], size)) for k, box in enumerate(boxes)]


def hidden(box, nearer, size: tuple[int, int]) -> bool:
    columns = np.linspace(box[0], box[2], 20)
    seen = (columns >= 0) & (columns <= size[0])
    for other in nearer:
        if other[1] < box[1] + 0.3 * (box[3] - box[1]):
            seen &= (columns < other[0]) | (columns > other[2])
    return bool(seen.mean() < VISIBLE)


def test_hota_of_a_crowd() -> None:
    rows = list(crowd(120))
    truth = Annotations("crowd", {"crowd": Sequence(dict(enumerate(rows)), (640, 360))})
    result = evaluate(truth, Annotations("tracker", {"crowd": tracked(rows, (640, 360), 25)})).tracks
    assert result is not None
    assert result.total.hota >= 0.80, result.total
    assert result.total.idf1 >= 0.90, result.total
    assert sum(row.ignore for frame in rows for row in frame) > 50  # there is something to bridge


@pytest.mark.skipif(not DEMO.is_dir(), reason="the demo clips are not there: make demo")
def test_hota_on_the_truth_of_the_demo_clips() -> None:
    truth = read_truth(DEMO)
    found = Annotations("tracker")
    for name, sequence in truth.sequences.items():
        assert sequence.size
        rows = [sequence.frames.get(n, []) for n in range(FRAMES)]
        sequence.frames, sequence.length = dict(enumerate(rows)), FRAMES
        found.sequences[name] = tracked(rows, sequence.size, 25)
    result = evaluate(truth, found).tracks
    assert result is not None
    assert result.total.hota >= 0.80, result.total
