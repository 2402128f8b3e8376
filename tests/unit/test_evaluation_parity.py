"""The same numbers as COCO's and the MOT challenges' own programs, on random scenes. Run where those are installed."""

import numpy as np
import pytest

from pipelines.evaluation import Annotations, evaluate
from pipelines.evaluation.annotations import Mask, Row, Sequence
from pipelines.evaluation.coco import filled

NAMES = ("cat", "dog")


def scene(seed: int, frames: int = 24) -> tuple[Annotations, Annotations]:
    """Objects that drift, some to be ignored; predictions with noise, misses, false ones and changed ids."""
    random = np.random.default_rng(seed)
    truth, found = Sequence(length=frames), Sequence()
    things = [(i, NAMES[i % 2], random.uniform(0, 400, 2), random.uniform(20, 90, 2), i % 7 == 6) for i in range(12)]
    for n in range(frames):
        truth.frames[n], found.frames[n] = [], []
        for i, label, place, size, ignore in things:
            x, y = place + 3.0 * n * np.array([i % 3 - 1, i % 2])
            box = (x, y, x + size[0], y + size[1])
            truth.frames[n].append(Row(label, box, track_id=i, ignore=ignore, mask=rectangle(box)))
            if random.random() < 0.85:
                moved = tuple(np.array(box) + random.normal(0, 4, 4))
                identity = i if n < 14 or i % 4 else 100 + i
                score = round(float(random.uniform(0.1, 1)), 2)
                found.frames[n].append(Row(label, moved, score, identity, mask=rectangle(moved)))
        for k in range(random.poisson(1)):
            x, y = random.uniform(0, 400, 2)
            box = (x, y, x + 40, y + 40)
            score = float(random.uniform(0.1, 0.9))
            found.frames[n].append(Row(NAMES[k % 2], box, score, 500 + n * 10 + k, mask=rectangle(box)))
    return Annotations("truth", {"clip": truth}, NAMES), Annotations("found", {"clip": found})


def rectangle(box) -> Mask:
    x1, y1, x2, y2 = np.round(np.array(box) + 200).astype(int)  # nothing left of or above the frame
    return Mask(int(x1), int(y1), np.ones((y2 - y1, x2 - x1), bool))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["bbox", "segm"])
def test_average_precision_is_that_of_pycocotools(seed: int, kind: str) -> None:
    coco, cocoeval = pytest.importorskip("pycocotools.coco"), pytest.importorskip("pycocotools.cocoeval")
    truth, found = scene(seed)
    reference = coco.COCO()
    reference.dataset = {
        "info": {},
        "images": [{"id": n + 1, "width": 720, "height": 720} for n in truth.sequences["clip"].frames],
        "categories": [{"id": i + 1, "name": name} for i, name in enumerate(NAMES)],
        "annotations": [entry(i + 1, *each) for i, each in enumerate(rows(truth))],
    }
    reference.createIndex()
    results = reference.loadRes([entry(i + 1, *each) for i, each in enumerate(rows(found))])
    judge = cocoeval.COCOeval(reference, results, kind)
    judge.evaluate()
    judge.accumulate()
    judge.summarize()
    ours = evaluate(truth, found)
    precision = ours.boxes if kind == "bbox" else ours.masks
    assert precision is not None
    np.testing.assert_allclose((precision.map, precision.map50, precision.map75), judge.stats[:3], atol=1e-9)
    assert 0.2 < precision.map < 0.9


@pytest.mark.parametrize("seed", range(3))
def test_average_precision_of_key_points_is_that_of_pycocotools(seed: int) -> None:
    coco, cocoeval = pytest.importorskip("pycocotools.coco"), pytest.importorskip("pycocotools.cocoeval")
    truth, found = (with_points(side, seed) for side in scene(seed))
    reference = coco.COCO()
    reference.dataset = {
        "info": {},
        "images": [{"id": n + 1, "width": 720, "height": 720} for n in truth.sequences["clip"].frames],
        "categories": [{"id": i + 1, "name": name} for i, name in enumerate(NAMES)],
        "annotations": [points_entry(i + 1, *each) for i, each in enumerate(rows(truth))],
    }
    reference.createIndex()
    results = reference.loadRes([points_entry(i + 1, *each) for i, each in enumerate(rows(found))])
    judge = cocoeval.COCOeval(reference, results, "keypoints")
    judge.evaluate()
    judge.accumulate()
    judge.summarize()
    precision = evaluate(truth, found).keypoints
    assert precision is not None
    np.testing.assert_allclose((precision.map, precision.map50, precision.map75), judge.stats[:3], atol=1e-9)
    assert 0.05 < precision.map < 0.9


def with_points(annotations: Annotations, seed: int, count: int = 17) -> Annotations:
    """Points at the same places of every box, a bit off where the score is low; some are not labelled."""
    pattern = np.random.default_rng(99).uniform(0, 1, (count, 2))
    random = np.random.default_rng(seed)
    for items in annotations.sequences["clip"].frames.values():
        for n, row in enumerate(items):
            x1, y1, x2, y2 = row.box
            places = np.array([x1, y1]) + pattern * np.array([x2 - x1, y2 - y1])
            places += random.normal(0, 3 * (1 - row.score), (count, 2))
            labelled = random.integers(0, 3, count) * (n % 5 != 4)
            items[n] = row._replace(keypoints=np.column_stack([places, labelled]), area=0.6 * (x2 - x1) * (y2 - y1))
    return annotations


def points_entry(number: int, frame: int, row: Row) -> dict:
    assert row.keypoints is not None
    x1, y1, x2, y2 = row.box
    return {
        "id": number, "image_id": frame + 1, "category_id": NAMES.index(row.label) + 1, "score": row.score,
        "bbox": [x1, y1, x2 - x1, y2 - y1], "area": row.area, "iscrowd": int(row.ignore),
        "keypoints": row.keypoints.ravel().tolist(), "num_keypoints": int((row.keypoints[:, 2] > 0).sum()),
    }  # fmt: skip


def rows(annotations: Annotations) -> list[tuple[int, Row]]:
    return [(n, row) for n, items in annotations.sequences["clip"].frames.items() for row in items]


def entry(number: int, frame: int, row: Row) -> dict:
    from pycocotools import mask

    x1, y1, x2, y2 = row.box
    pixels = np.zeros((720, 720), np.uint8)
    if row.mask:
        height, width = row.mask.pixels.shape
        pixels[row.mask.y : row.mask.y + height, row.mask.x : row.mask.x + width] = row.mask.pixels
    rle = mask.encode(np.asfortranarray(pixels))
    return {
        "id": number,
        "image_id": frame + 1,
        "category_id": NAMES.index(row.label) + 1,
        "bbox": [x1, y1, x2 - x1, y2 - y1],
        "area": (x2 - x1) * (y2 - y1),
        "score": row.score,
        "iscrowd": int(row.ignore),
        "segmentation": rle,
    }


def test_outlines_are_filled_as_pycocotools_does() -> None:
    mask = pytest.importorskip("pycocotools.mask")
    random = np.random.default_rng(3)
    for _ in range(20):
        angles = np.sort(random.uniform(0, 2 * np.pi, 9))
        points = np.stack([np.cos(angles), np.sin(angles)], axis=1) * random.uniform(20, 60, (9, 1)) + (70, 60)
        theirs = mask.decode(mask.frPyObjects([points.ravel().tolist()], 120, 140))[..., 0].astype(bool)
        mine = filled([points], (140, 120))
        ours = np.zeros((120, 140), bool)
        height, width = mine.pixels.shape
        ours[mine.y : mine.y + height, mine.x : mine.x + width] = mine.pixels
        assert (ours & theirs).sum() / (ours | theirs).sum() > 0.97


@pytest.mark.parametrize("seed", range(3))
def test_tracks_are_scored_as_by_trackeval(seed: int) -> None:
    trackeval = pytest.importorskip("trackeval")
    truth, found = scene(seed)
    for annotations in (truth, found):  # what need not be found is the data set's matter in TrackEval
        for frame, items in annotations.sequences["clip"].frames.items():
            annotations.sequences["clip"].frames[frame] = [
                row for row in items if row.label == "cat" and not row.ignore
            ]
    tracks = evaluate(truth, found).tracks
    assert tracks is not None
    data = as_trackeval(truth, found)
    hota = trackeval.metrics.HOTA().eval_sequence(data)
    clear = trackeval.metrics.CLEAR({"PRINT_CONFIG": False}).eval_sequence(data)
    identity = trackeval.metrics.Identity({"PRINT_CONFIG": False}).eval_sequence(data)
    total = tracks.total
    theirs = [hota[key].mean() for key in ("HOTA", "DetA", "AssA", "LocA")]
    np.testing.assert_allclose((total.hota, total.deta, total.assa), theirs[:3], atol=1e-9)
    np.testing.assert_allclose(
        (total.mota, total.motp, total.idf1), (clear["MOTA"], clear["MOTP"], identity["IDF1"]), atol=1e-9
    )
    counts = (total.switches, total.fragments, total.mostly_tracked, total.mostly_lost)
    assert counts == tuple(clear[key] for key in ("IDSW", "Frag", "MT", "ML"))


def as_trackeval(truth: Annotations, found: Annotations) -> dict:
    frames = sorted(truth.sequences["clip"].frames)
    sides = [[side.sequences["clip"].frames[n] for n in frames] for side in (truth, found)]
    numbers = [{i: k for k, i in enumerate(sorted({r.track_id for rows in side for r in rows}))} for side in sides]
    ids = [[np.array([numbers[s][r.track_id] for r in rows], int) for rows in side] for s, side in enumerate(sides)]
    return {
        "num_gt_dets": sum(map(len, sides[0])),
        "num_tracker_dets": sum(map(len, sides[1])),
        "num_gt_ids": len(numbers[0]),
        "num_tracker_ids": len(numbers[1]),
        "num_timesteps": len(frames),
        "gt_ids": ids[0],
        "tracker_ids": ids[1],
        "similarity_scores": [iou(a, b) for a, b in zip(*sides, strict=True)],
    }


def iou(a: list[Row], b: list[Row]) -> np.ndarray:
    one, other = (np.array([row.box for row in rows]).reshape(-1, 1, 4) for rows in (a, b))
    other = other.transpose(1, 0, 2)
    sides = np.clip(np.minimum(one[..., 2:], other[..., 2:]) - np.maximum(one[..., :2], other[..., :2]), 0, None)
    areas = [np.prod(boxes[..., 2:] - boxes[..., :2], axis=-1) for boxes in (one, other)]
    shared = sides.prod(axis=-1)
    return shared / (areas[0] + areas[1] - shared)
