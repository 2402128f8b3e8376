"""Angles behind NVIDIA's tracker, on the portable API's handles. The tracker is played by hand."""

import math
from pathlib import Path

import pytest

from elements.portable.meta import PREDICTED_CONFIDENCE, BatchMeta, FrameMeta, ObjectMeta
from elements.portable.pyservicemaker.metadata import BatchMetadata
from pipelines.builder import build_graph
from pipelines.definition import definition_from_mapping
from pipelines.draft import Facts
from pipelines.runtime import load_runtime

load_runtime("portable")

from pipelines.operators.angles import AngleCarrier  # noqa: E402

Rect = tuple[float, float, float, float, float]  # left, top, width, height, degrees


def carrier() -> AngleCarrier:
    def report(text: str, trace: str) -> None:
        raise AssertionError(text + trace)

    return AngleCarrier(report)


def step(operator: AngleCarrier, n: int, item: ObjectMeta, source_id: int = 0) -> Rect:
    """The operator on frame ``n`` (10 per second) with the object; its rectangle afterwards."""
    frame = FrameMeta(source_id=source_id, frame_number=n, buffer_pts=n * 100_000_000, objects=[item])
    operator.handle_metadata(BatchMetadata(BatchMeta(1, [frame])))
    rect = item.rect
    return rect.left, rect.top, rect.width, rect.height, rect.rotation_angle


def found(detector: Rect, tracker: tuple[float, float, float, float] | None = None, track: int = 5) -> ObjectMeta:
    """An object of the detector with the tracker's rectangle."""
    *box, degrees = detector
    item = ObjectMeta(object_id=track, confidence=0.9, detector_box=tuple(box))
    item.rect.left, item.rect.top, item.rect.width, item.rect.height = tracker or box
    item.rect.rotation_angle = degrees
    return item


def continued(left: float, top: float, width: float, height: float, track: int = 5) -> ObjectMeta:
    item = found((left, top, width, height, 77), track=track)  # whatever the tracker copied
    item.confidence, item.detector_box = PREDICTED_CONFIDENCE, (0.0, 0.0, 0.0, 0.0)
    return item


def test_the_detectors_rectangle_comes_back_where_the_tracker_moved_or_cut_it() -> None:
    assert step(carrier(), 0, found((-20, 10, 100, 40, 30), tracker=(0, 12, 83, 39))) == pytest.approx(
        (-20, 10, 100, 40, 30)
    )


def test_the_angle_is_continuous_through_a_full_turn_of_a_detector_that_renames_it() -> None:
    operator = carrier()
    for n in range(40):
        true = 10 + 12 * n
        quarters, rest = divmod(true, 90)
        sides = (40, 100) if quarters % 2 else (100, 40)
        box = (200 - sides[0] / 2, 150 - sides[1] / 2, *sides, rest)
        left, top, width, height, degrees = step(operator, n, found(box))
        assert (left, top, width, height) == pytest.approx((150, 130, 100, 40))
        assert math.sin(math.radians(degrees - true)) == pytest.approx(0, abs=1e-4)
        assert math.cos(math.radians(degrees - true)) == pytest.approx(1)


def test_without_a_detection_it_goes_on_turning_for_a_second_at_the_trackers_place() -> None:
    operator = carrier()
    for n in range(30):
        step(operator, n, found((150, 130, 100, 40, 3 * n)))  # 30 degrees per second
    assert step(operator, 31, continued(160, 128, 100, 44)) == pytest.approx((160, 130, 100, 40, 93), abs=0.01)
    assert step(operator, 39, continued(160, 128, 100, 44)) == pytest.approx((160, 130, 100, 40, 117), abs=0.01)
    assert step(operator, 60, continued(160, 128, 100, 44))[4] == pytest.approx(117, abs=0.01)
    assert step(operator, 61, found((160, 130, 100, 40, -63)))[4] == pytest.approx(117)  # the same outline


def test_upright_objects_are_left_alone() -> None:
    operator = carrier()
    upright = (10.0, 20.0, 30.0, 40.0)
    assert step(operator, 0, found((11, 21, 28, 38, 0), tracker=upright)) == (*upright, 0)
    assert step(operator, 1, continued(*upright)) == (*upright, 77)
    untracked = found((0, 0, 100, 40, 30), tracker=upright, track=2**64 - 1)
    assert step(operator, 2, untracked) == (*upright, 30)


def test_tracks_of_sources_are_apart_and_forgotten() -> None:
    operator = carrier()
    step(operator, 0, found((150, 130, 100, 40, 30)))
    assert step(operator, 1, continued(150, 130, 100, 40), source_id=1)[4] == 77
    assert step(operator, 1, continued(150, 130, 100, 40))[4] == pytest.approx(30)
    step(operator, 200, continued(0, 0, 1, 1, track=6))
    assert operator._sources[0] == {}
    step(operator, 201, found((150, 130, 100, 40, 30)))
    step(operator, 0, continued(0, 0, 1, 1, track=6))  # the stream began anew
    assert operator._sources[0] == {}


@pytest.mark.parametrize(("stand_ins", "attached"), [(frozenset(), True), (frozenset({"nvtracker"}), False)])
def test_it_is_attached_behind_nvidias_tracker_only(
    stand_ins: frozenset[str], attached: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "exists", lambda self: True)
    monkeypatch.setattr(Path, "is_file", lambda self: True)
    stages = [{"infer": {"model": "m.onnx"}}, {"track": {}}]
    definition = definition_from_mapping({"pipeline": "p", "sources": ["a.mp4"], "stages": stages}, Path("/videos"))
    graph = build_graph(definition, Facts(((640, 360),), stand_ins=stand_ins))
    angles = [a for a in graph.attachments if a.operator == "pipelines.operators.angles:AngleCarrier"]
    assert [a.node for a in angles] == ["track"] * attached
