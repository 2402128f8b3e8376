"""Objects that turn keep their ids, and their angle goes on smoothly whatever the detector calls it."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from elements.metadata.rotated import rotated_iou, same_outline
from elements.portable.meta import PREDICTED_CONFIDENCE, FrameMeta, ObjectMeta
from elements.portable.tracking.association import Boxes, overlapping
from elements.portable.tracking.config import TrackerConfig
from elements.portable.tracking.objects import SourceObjects
from elements.portable.tracking.tracker import SourceTracker

CENTRE = (320.0, 180.0)
Named = tuple[float, float, float]  # width, height, degrees


def as_it_is(width: float, height: float, degrees: float, n: int) -> Named:
    return width, height, degrees


def half_turn(width: float, height: float, degrees: float, n: int) -> Named:
    """Angles from -90 to 90, as ultralytics' and many others."""
    return width, height, (degrees + 90) % 180 - 90


def quarter_turn(width: float, height: float, degrees: float, n: int) -> Named:
    """Angles from 0 to 90, sides exchanged where it must be, as OpenCV's minAreaRect."""
    quarters, rest = divmod(degrees, 90)
    return (height, width, rest) if quarters % 2 else (width, height, rest)


def flickering(width: float, height: float, degrees: float, n: int) -> Named:
    """Another name in each frame."""
    return ((width, height, degrees), (height, width, degrees + 90), (width, height, degrees - 180))[n % 3]


def turned(width: float, height: float, degrees: float, centre: tuple[float, float] = CENTRE) -> ObjectMeta:
    item = ObjectMeta(label="ship", confidence=0.8)
    item.rect.left, item.rect.top = centre[0] - width / 2, centre[1] - height / 2
    item.rect.width, item.rect.height, item.rect.rotation_angle = width, height, degrees
    return item


def frame_of(*items: ObjectMeta, inferred: bool = True) -> FrameMeta:
    frame = FrameMeta(pipeline_width=640, pipeline_height=360, infer_done=inferred)
    frame.objects = list(items)
    return frame


def source(**config: object) -> SourceObjects:
    return SourceObjects(SourceTracker(TrackerConfig(**config)), display_id=False)  # type: ignore[arg-type]


def degrees_between(a: float, b: float) -> float:
    return (a - b + 180) % 360 - 180


def spin(
    name: Callable[[float, float, float, int], Named],
    sides: tuple[float, float] = (120, 30),
    rate: float = 90.0,
    fps: int = 15,
    turns: float = 1.25,
    noise: float = 0.0,
    missed: Callable[[int], bool] = lambda n: False,
) -> tuple[set[int], list[tuple[float, ObjectMeta]]]:
    """One object that turns at ``rate`` degrees per second. Gives its ids, and (true angle, object) of each frame."""
    objects, random = source(), np.random.default_rng(7)
    seen = []
    for n in range(round(turns * 360 / abs(rate) * fps)):
        angle = 10 + rate * n / fps
        width, height, degrees = name(*sides, angle, n)
        wobble = random.normal(0, noise, 5) if noise else np.zeros(5)
        item = turned(
            width + wobble[0], height + wobble[1], degrees + 2 * wobble[2], (320 + wobble[3], 180 + wobble[4])
        )
        frame = frame_of(*([] if missed(n) else [item]))
        objects.process(frame, n / fps)
        seen += [(angle, item) for item in frame.objects]
    return {item.object_id for _, item in seen}, seen


@pytest.mark.parametrize("name", [as_it_is, half_turn, quarter_turn, flickering])
@pytest.mark.parametrize(("rate", "fps"), [(90, 15), (180, 10), (-180, 30), (45, 5)])
def test_a_full_turn_keeps_the_id_and_the_angle_is_that_of_the_object(name, rate: float, fps: int) -> None:
    ids, seen = spin(name, rate=rate, fps=fps)
    assert ids == {1}
    offset = degrees_between(seen[0][1].rect.rotation_angle, seen[0][0])  # it may start by another of its names
    for angle, item in seen:
        assert degrees_between(item.rect.rotation_angle, angle) == pytest.approx(offset, abs=0.01)
        assert (item.rect.width, item.rect.height) == pytest.approx((seen[0][1].rect.width, seen[0][1].rect.height))
        assert (item.rect.left + item.rect.width / 2, item.rect.top + item.rect.height / 2) == pytest.approx(CENTRE)


@pytest.mark.parametrize("name", [half_turn, quarter_turn, flickering])
@pytest.mark.parametrize("sides", [(120, 30), (70, 50), (62, 55)])
def test_with_noise_and_misses_too(name, sides: tuple[float, float]) -> None:
    """Sides and centre are off by 1.5 pixels, angles by 3 degrees; a third of the frames and 0.6 s are missing."""
    missed = lambda n: n % 3 == 2 or 30 <= n < 39  # noqa: E731
    ids, seen = spin(name, sides, noise=1.5, missed=missed)
    assert ids == {1}
    errors = [degrees_between(item.rect.rotation_angle, angle) for angle, item in seen]
    assert max(abs(degrees_between(error, errors[0])) for error in errors) < 25  # never the 90 or 180 of another name


def test_two_that_turn_against_each_other_where_they_cross_keep_their_ids() -> None:
    objects, ids = source(), []
    for n in range(60):
        drift = 4.0 * n
        frame = frame_of(
            turned(*half_turn(100, 20, 6.0 * n, n), (200 + drift, 150)),
            turned(*half_turn(100, 20, 45 - 6.0 * n, n), (440 - drift, 210)),
        )
        objects.process(frame, n / 15)
        ids.append([item.object_id for item in frame.objects])
    assert {tuple(row) for row in ids if row} == {(1, 2)}


def test_the_angle_decides_where_the_upright_boxes_would_be_the_same() -> None:
    """A cross of two bars: in each frame the detector gives them in another order."""
    objects = source()
    for n in range(8):
        bars = [turned(100, 10, 45 + n), turned(100, 10, -45 + n)]
        frame = frame_of(*(bars if n % 2 else bars[::-1]))
        objects.process(frame, n / 10)
        by_id = {item.object_id: item.rect.rotation_angle for item in frame.objects}
    assert by_id[2] - by_id[1] == pytest.approx(90)


def test_frames_without_inference_go_on_turning() -> None:
    objects = source()
    for n in range(30):
        objects.process(frame_of(turned(*quarter_turn(120, 30, 10 + 6 * n, n))), n / 15)
    frame = frame_of(inferred=False)
    objects.process(frame, 31 / 15)
    (item,) = frame.objects
    assert (item.object_id, item.confidence) == (1, PREDICTED_CONFIDENCE)
    expected = turned(120, 30, 10 + 6 * 31)
    assert overlap(item, expected) > 0.95


def test_upright_objects_stay_upright_whatever_their_sides_do() -> None:
    """Someone who falls down: the sides are exchanged, nothing turns."""
    objects = source(min_matching_score_4_iou=0.05)
    for n, sides in enumerate([(40, 120)] * 6 + [(80, 80)] * 2 + [(120, 40)] * 4):
        frame = frame_of(turned(*sides, 0.0))
        objects.process(frame, n / 10)
    (item,) = frame.objects
    assert (item.object_id, item.rect.width, item.rect.height, item.rect.rotation_angle) == (1, 120, 40, 0)


def test_a_turn_that_starts_upright_keeps_the_id() -> None:
    objects, angles = source(), []
    for n in range(20):
        frame = frame_of(turned(*quarter_turn(90, 30, max(0, n - 6) * -5.0, n)))
        objects.process(frame, n / 15)
        angles += [(item.object_id, round(item.rect.rotation_angle, 3)) for item in frame.objects]
    assert angles[-1] == (1, -65.0)
    assert {i for i, _ in angles} == {1}


def test_a_box_that_turns_is_never_cut_by_the_frame_also_where_its_angle_is_nought() -> None:
    objects = source()
    for n in range(7):
        frame = frame_of(turned(120, 30, 5.0 * (n - 6), centre=(30, 100)))
        objects.process(frame, n / 10)
    (item,) = frame.objects
    assert (item.rect.rotation_angle, item.rect.left, item.rect.width) == pytest.approx((0, -30, 120), abs=1e-4)


def test_an_angle_that_is_not_a_number_is_no_detection() -> None:
    objects = source()
    for n in range(3):
        good, bad = turned(100, 30, 5), turned(100, 30, math.nan, (100, 100))
        frame = frame_of(good, bad)
        objects.process(frame, n / 10)
    assert frame.objects == [good]


def test_overlap_without_angles_is_the_usual_one() -> None:
    boxes = np.array([[0, 0, 10, 10, 0], [0, 0, 10, 20, 0.0]])

    def overlaps() -> list[float]:
        both = Boxes(boxes, np.zeros(2, int))
        return overlapping(both, both)[2].tolist()

    assert overlaps() == pytest.approx([1, 0.5, 0.5, 1])
    boxes[0, 4] = math.pi / 2
    assert overlaps() == pytest.approx([1, 0.5, 0.5, 1])
    boxes[:, 4] = math.pi / 4
    assert overlaps()[0] == pytest.approx(1)


@pytest.mark.parametrize(("wanted", "angle"), [(0.2, 0.2), (3.3, 0.2 + math.pi), (-6.1, 0.2 - 2 * math.pi)])
def test_the_nearest_name_of_half_turns(wanted: float, angle: float) -> None:
    box, like = np.array([0, 0, 40, 10, 0.2]), np.array([0, 0, 41, 9, wanted])
    np.testing.assert_allclose(same_outline(box, like), [0, 0, 40, 10, angle])
    np.testing.assert_allclose(same_outline([box, box], [like, box]), [[0, 0, 40, 10, angle], box])  # rows


def overlap(a: ObjectMeta, b: ObjectMeta) -> float:
    boxes = [[o.rect.left, o.rect.top, o.rect.left + o.rect.width, o.rect.top + o.rect.height] for o in (a, b)]
    angles = [math.radians(o.rect.rotation_angle) for o in (a, b)]
    return float(rotated_iou([boxes[0]], [angles[0]], [boxes[1]], [angles[1]])[0, 0])
