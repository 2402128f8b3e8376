"""Tracks of one source: ids, stream time, DeepStream's rules for objects."""

import math

import numpy as np
import pytest

from elements.portable.meta import PREDICTED_CONFIDENCE, UNTRACKED_OBJECT_ID, FrameMeta, ObjectMeta
from elements.portable.tracking.config import TrackerConfig
from elements.portable.tracking.objects import SourceObjects
from elements.portable.tracking.tracker import SourceTracker

WIDTH, HEIGHT = 640, 360

Box = tuple[float, float, float, float]  # left, top, width, height


def person(box: Box, confidence: float = 0.8, class_id: int = 0) -> ObjectMeta:
    item = ObjectMeta(class_id=class_id, label=f"class{class_id}", confidence=confidence, detector_box=box)
    item.rect.left, item.rect.top, item.rect.width, item.rect.height = box
    item.rect.border_width = 2
    return item


def frame_of(*items: ObjectMeta, inferred: bool = True) -> FrameMeta:
    frame = FrameMeta(pipeline_width=WIDTH, pipeline_height=HEIGHT, infer_done=inferred)
    frame.objects = list(items)
    return frame


def source(display_id: bool = True, **config: object) -> SourceObjects:
    return SourceObjects(SourceTracker(TrackerConfig(**config)), display_id=display_id)  # type: ignore[arg-type]


def ids_over(objects: SourceObjects, times: list[float], box_at) -> list[list[int]]:
    """Ids on each frame; ``box_at(time)`` gives the frame's boxes."""
    result = []
    for time_s in times:
        frame = frame_of(*map(person, box_at(time_s)))
        objects.process(frame, time_s)
        result.append([item.object_id for item in frame.objects])
    return result


def walker(speed: float = 100.0):
    """One person who walks right at ``speed`` pixels per second."""
    return lambda time_s: [(20 + speed * time_s, 100.0, 40.0, 120.0)]


def every(seconds: float, count: int) -> list[float]:
    return [n * seconds for n in range(count)]


# --- life cycle -------------------------------------------------------------------------------------------------------


def test_a_person_gets_an_id_at_the_third_detection_at_30_frames_per_second() -> None:
    assert ids_over(source(), every(1 / 30, 5), walker()) == [[], [], [1], [1], [1]]


def test_and_at_the_second_one_at_15_frames_per_second() -> None:
    assert ids_over(source(), every(1 / 15, 4), walker()) == [[], [1], [1], [1]]


def test_a_frame_of_a_tenth_of_a_second_fills_the_probation_age() -> None:
    late = lambda time_s: walker()(time_s) if time_s >= 0.2 else []  # noqa: E731
    assert ids_over(source(), every(0.1, 4), late) == [[], [], [1], [1]]


def test_probation_of_zero_keeps_the_first_detection() -> None:
    assert ids_over(source(probation_age=0), every(0.1, 3), walker()) == [[1], [1], [1]]


def test_a_detection_of_one_frame_never_gets_an_id() -> None:
    flash = lambda time_s: walker()(time_s) if time_s == 0.05 else []  # noqa: E731
    assert ids_over(source(), every(0.05, 4), flash) == [[], [], [], []]


def test_early_termination_age_lets_a_tentative_target_miss_frames() -> None:
    seen = {0.0: True, 0.05: False, 0.1: True, 0.15: True}
    flicker = lambda time_s: walker(0)(time_s) if seen[round(time_s, 2)] else []  # noqa: E731
    assert ids_over(source(), every(0.05, 4), flicker) == [[], [], [], [1]]
    patient = source(early_termination_age=2, probation_age=3)
    assert len(patient.tracker._targets) == 0
    ids_over(patient, every(0.05, 2), flicker)
    assert len(patient.tracker._targets) == 1  # alive after one miss
    impatient = source(early_termination_age=1, probation_age=3)
    ids_over(impatient, every(0.05, 2), flicker)
    assert len(impatient.tracker._targets) == 0


@pytest.mark.parametrize("fps", [5, 10, 15, 30, 60])
def test_shadow_age_is_stream_time_whatever_the_frame_rate(fps: int) -> None:
    """45 frames of age are 1.5 s: an absence of 1.2 s keeps the id, one of 2 s does not."""
    for absent, expected in ((1.2, {1}), (2.0, {1, 2})):
        gone = lambda t, absent=absent: [] if 2 <= t < 2 + absent else walker(10)(t)  # noqa: E731
        seen = ids_over(source(), every(1 / fps, fps * 6), gone)
        assert {i for frame in seen for i in frame} == expected, absent


def test_irregular_times_keep_the_track() -> None:
    times = np.cumsum([0.03, 0.03, 0.9, 0.05, 0.4, 0.03, 1.2, 0.1, 0.03, 2.0, 0.03]).tolist()
    assert {i for frame in ids_over(source(), times, walker(30)) for i in frame} == {1}


def test_prediction_covers_the_elapsed_time() -> None:
    """After 1 s without a frame a fast walker is one width away from where it was, but where it is expected."""
    times = [*every(0.1, 20), 2.9]
    assert ids_over(source(), times, walker(100))[-1] == [1]


def test_times_that_repeat_or_step_back() -> None:
    objects = source()
    assert ids_over(objects, [5.0, 5.0, 5.0, 5.1], walker(0)) == [[], [], [1], [1]]
    assert ids_over(objects, [0.0, 0.1], walker(0)) == [[], [2]]


def test_ids_of_two_who_stand_apart_are_stable() -> None:
    both = lambda t: [*walker(50)(t), (500.0, 100.0, 40.0, 120.0)]  # noqa: E731
    seen = ids_over(source(), every(0.1, 40), both)
    assert seen[-1] == [1, 2]
    assert {tuple(frame) for frame in seen[1:]} == {(1, 2)}


def test_a_class_never_takes_over_the_track_of_another() -> None:
    box = (100.0, 100.0, 40.0, 120.0)
    for check, expected in ((True, 2), (False, 1)):
        objects = source(check_class_match=check)
        for n in range(6):
            frame = frame_of(person(box, class_id=0 if n < 3 else 2))
            objects.process(frame, n / 10)
        assert [item.object_id for item in frame.objects] == [expected]


def test_unsure_detections_continue_tracks_and_start_none() -> None:
    objects = source(tentative_detector_confidence=0.5)
    confidences = [0.3, 0.3, 0.9, 0.9, 0.3, 0.3]
    result = []
    for n, confidence in enumerate(confidences):
        frame = frame_of(person((100, 100, 40, 120), confidence))
        objects.process(frame, n / 15)
        result.append([item.object_id for item in frame.objects])
    assert result == [[], [], [], [1], [1], [1]]


def test_detections_below_the_minimum_are_dropped() -> None:
    objects = source(min_detector_confidence=0.5)
    for n in range(4):
        frame = frame_of(person((100, 100, 40, 120), 0.4))
        objects.process(frame, n / 10)
        assert frame.objects == []


def test_a_detection_on_an_existing_target_starts_no_second_one() -> None:
    doubled = lambda t: [(100.0, 100.0, 40.0, 120.0)] * (1 if t < 0.25 else 2)  # noqa: E731
    assert {i for f in ids_over(source(), every(0.1, 10), doubled) for i in f} == {1}
    assert {i for f in ids_over(source(min_iou_diff_4_new_target=1.0), every(0.1, 10), doubled) for i in f} == {1, 2}


def test_no_more_targets_than_allowed_and_old_ones_stay() -> None:
    objects = source(max_targets_per_stream=2)
    row = lambda t: [(100.0 * n, 100.0, 40.0, 120.0) for n in range(1 if t < 0.25 else 5)]  # noqa: E731
    seen = ids_over(objects, every(0.1, 8), row)
    assert seen[2] == [1]
    assert seen[-1] == [1, 2]


def test_300_objects() -> None:
    grid = lambda t: [(16.0 * (n % 40), 40.0 * (n // 40), 14.0, 36.0) for n in range(300)]  # noqa: E731
    seen = ids_over(source(max_targets_per_stream=500), every(0.1, 3), grid)
    assert [len(frame) for frame in seen] == [0, 300, 300]
    assert sorted(seen[-1]) == list(range(1, 301))


def test_unique_ids_have_random_upper_bits() -> None:
    first, second = (ids_over(source(use_unique_id=True), every(0.1, 2), walker())[-1][0] for _ in range(2))
    assert first & 0xFFFFFFFF == second & 0xFFFFFFFF == 1
    assert first >> 32 != second >> 32


# --- what is written on objects ---------------------------------------------------------------------------------------


def test_matched_objects_keep_the_detectors_box_inside_of_the_frame() -> None:
    objects = source()
    for n in range(3):
        frame = frame_of(person((-10.0, 100.0, 40.0, 300.0)))
        objects.process(frame, n / 10)
    (item,) = frame.objects
    assert (item.rect.left, item.rect.top, item.rect.width, item.rect.height) == (0, 100, 30, 260)
    assert item.tracker_box == pytest.approx((-10, 100, 40, 300), abs=0.5)
    assert item.detector_box == (-10.0, 100.0, 40.0, 300.0)
    assert item.confidence == 0.8
    assert item.tracker_confidence == 1.0


def test_a_turned_box_is_not_cut() -> None:
    objects = source()
    for n in range(2):
        item = person((-10.0, 100.0, 40.0, 80.0))
        item.rect.rotation_angle = 30.0
        objects.process(frame_of(item), n / 10)
    assert (item.rect.left, item.rect.width) == (-10, 40)


def test_text_has_the_id_and_deepstreams_style_if_it_had_none() -> None:
    objects = source()
    for n in range(3):
        styled, plain = person((100, 100, 40, 120)), person((300, 10, 40, 120))
        styled.text.display_text, styled.text.font_params.size = "person 0.80", 14
        objects.process(frame_of(styled, plain), n / 10)
    assert styled.text.display_text == "person 0.80 1"
    assert styled.text.font_params.size == 14
    assert (plain.text.display_text, plain.text.x_offset, plain.text.y_offset) == ("class0 2", 300, 0)
    assert plain.text.font_params.size == 10
    assert plain.text.text_bg_clr.a == 1.0


def test_text_is_left_alone_without_display_id() -> None:
    objects = source(display_id=False)
    for n in range(3):
        item = person((100, 100, 40, 120))
        objects.process(frame_of(item), n / 10)
    assert (item.object_id, item.text.display_text) == (1, "")


def test_frames_without_inference_show_active_targets_where_they_are_expected() -> None:
    objects = source()
    for n in range(20):
        item = person((20 + 10.0 * n, 100, 40, 120))
        item.text.display_text = "person"
        objects.process(frame_of(item), n / 10)
    item.rect.border_width = 77  # what happens to the object downstream does not come back
    frame = frame_of(inferred=False)
    objects.process(frame, 1.95)
    (ghost,) = frame.objects
    assert (ghost.object_id, ghost.class_id, ghost.label) == (1, 0, "class0")
    assert ghost.confidence == PREDICTED_CONFIDENCE
    assert ghost.rect.left == pytest.approx(215, abs=1)  # 100 pixels per second
    assert ghost.rect.width == pytest.approx(40, abs=1)
    assert ghost.detector_box == (0.0, 0.0, 0.0, 0.0)
    assert ghost.rect.border_width == 2
    assert ghost.text.display_text == "person 1"
    later = frame_of(inferred=False)
    objects.process(later, 30.0)
    assert later.objects == []


def test_tracks_survive_intervals_without_inference() -> None:
    """Inference on every fifth of 30 frames per second; all frames but the first few have the same one object."""
    objects, seen = source(), []
    for n in range(60):
        inferred = n % 5 == 0
        frame = frame_of(*([person((20 + 3.0 * n, 100, 40, 120))] if inferred else []), inferred=inferred)
        objects.process(frame, n / 30)
        seen.append([item.object_id for item in frame.objects])
    assert seen[:5] == [[]] * 5
    assert seen[5:] == [[1]] * 55


def test_a_lost_target_is_not_shown_between_inferences() -> None:
    objects = source()
    ids_over(objects, every(0.1, 3), walker())
    objects.process(frame_of(), 0.3)
    frame = frame_of(inferred=False)
    objects.process(frame, 0.35)
    assert frame.objects == []


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e30])
@pytest.mark.parametrize("field", ["left", "top", "width", "height"])
def test_boxes_that_are_no_boxes_are_dropped_and_harm_nobody(field: str, value: float) -> None:
    objects = source()
    for n in range(4):
        good, bad = person((100, 100, 40, 120)), person((300, 100, 40, 120))
        setattr(bad.rect, field, value)
        frame = frame_of(bad, good)
        objects.process(frame, n / 10)
    assert good in frame.objects
    assert good.object_id != UNTRACKED_OBJECT_ID
    assert all(math.isfinite(edge) for item in frame.objects for edge in item.tracker_box)


def test_nan_confidence_is_no_detection() -> None:
    objects = source()
    for n in range(3):
        frame = frame_of(person((100, 100, 40, 120), math.nan))
        objects.process(frame, n / 10)
    assert frame.objects == []


def test_empty_frames_cost_no_state() -> None:
    objects = source()
    ids_over(objects, every(0.1, 5), walker())
    ids_over(objects, [t + 0.5 for t in every(0.1, 40)], lambda t: [])
    assert objects.tracker.alive() == set()
    assert objects._looks == {}
