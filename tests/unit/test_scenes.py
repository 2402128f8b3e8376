"""The generated street scenes and their truth."""

from pathlib import Path

import numpy as np
import pytest

from tools.scenes import CLASSES, Scene, Truth, TruthObject
from tools.scenes.camera import Camera
from tools.scenes.light import random_light
from tools.scenes.matching import iou
from tools.scenes.people import cyclist, pedestrian, random_looks
from tools.scenes.raster import compose, draw, extent
from tools.scenes.shapes import Figure, Polygons, Pose, figure_polygons
from tools.scenes.traffic import Actor
from tools.scenes.truth import load_truth, write_truth
from tools.scenes.vehicles import car, truck


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene(3, 320, 180, 25, "street")


def test_frames_depend_on_seed_and_number_only(scene: Scene) -> None:
    picture, truth = scene.render(40)
    scene.render(7)
    again, same_truth = Scene(3, 320, 180, 25, "street").render(40)
    assert picture.shape == (180, 320, 3)
    assert picture.dtype == np.uint8
    assert np.array_equal(picture, again)
    assert truth == same_truth
    other, _ = Scene(4, 320, 180, 25, "street").render(40)
    assert not np.array_equal(picture, other)


@pytest.mark.parametrize("size", [(320, 180), (180, 320)])
def test_truth_lies_inside_the_picture(size: tuple[int, int]) -> None:
    scene = Scene(9, *size, 25)
    seen = [item for frame in (0, 100, 200) for item in scene.render(frame)[1]]
    assert len(seen) > 20
    for item in seen:
        x1, y1, x2, y2 = item.box
        assert 0 <= x1 < x2 <= size[0]
        assert 0 <= y1 < y2 <= size[1]
        assert 0 <= item.visibility <= 1
        assert item.label in CLASSES


def test_a_track_moves_little_between_frames(scene: Scene) -> None:
    before = {item.track_id: item for item in scene.render(50)[1] if not item.ignore}
    after = {item.track_id: item for item in scene.render(51)[1] if not item.ignore}
    common = before.keys() & after.keys()
    assert len(common) >= 5
    for track in common:
        assert before[track].label == after[track].label
        assert iou(np.array([before[track].box]), np.array([after[track].box]))[0, 0] > 0.5


def figures() -> list[tuple[str, Figure]]:
    rng = np.random.default_rng(1)
    looks = random_looks(rng)
    return [
        ("car", car(rng).mesh),
        ("truck", truck(rng).mesh),
        ("person", pedestrian(looks, 3.1, walking=True)),
        ("cyclist", cyclist(looks, 3.1)),
    ]


@pytest.mark.parametrize(("name", "figure"), figures())
def test_boxes_are_tight_on_the_drawn_pixels(name: str, figure: Figure) -> None:
    camera = Camera(640, 360, 500.0, (0.0, 5.0, 0.0), 0.0, 0.3)
    polygons = figure_polygons(figure, Pose(1.0, 14.0, 0.6), camera, random_light(np.random.default_rng(2)), 1.0)
    patch = draw(polygons, 640, 360)
    assert patch is not None
    box = extent(patch)
    assert box is not None
    picture = np.full((360, 640, 3), 255, np.uint8)
    compose(picture, patch)
    rows, columns = np.nonzero((picture != 255).any(axis=2))
    drawn = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
    assert np.abs(np.subtract(box, drawn)).max() <= 1


def test_a_rectangle_on_pixel_borders_has_exactly_its_box() -> None:
    corners = np.array([(10.0, 20.0), (150.0, 20.0), (150.0, 60.0), (10.0, 60.0)])
    patch = draw(Polygons([corners], np.array([[200, 0, 0]], np.uint8)), 320, 180)
    assert patch is not None
    assert extent(patch) == (10, 20, 150, 60)


class Standing:
    """A belt of actors that stay where they are put."""

    def __init__(self, *placed: tuple[Actor, Pose]) -> None:
        self._placed = placed

    def at(self, time: float) -> list[tuple[Actor, Pose, float]]:
        return [(actor, pose, 0.0) for actor, pose in self._placed]


def test_what_stands_behind_a_truck_is_hidden() -> None:
    scene = Scene(3, 320, 180, 25, "street")
    scene._furniture = []
    x, _, z = scene.camera.position
    ahead = np.array([np.sin(scene.camera.yaw), np.cos(scene.camera.yaw)])
    rng = np.random.default_rng(5)
    near, far = (Pose(*(np.array([x, z]) + ahead * distance), scene.camera.yaw) for distance in (16.0, 21.0))
    lorry = truck(rng)
    front = Actor(1, "truck", lorry.mesh, lorry.width, lorry.length, still=False)
    behind = Actor(2, "person", random_looks(rng), 0.5, 0.5, still=False)
    scene._belts = [Standing((front, near), (behind, far))]
    hidden = {item.track_id: item for item in scene.render(0)[1]}
    scene._belts = [Standing((behind, far))]
    alone = {item.track_id: item for item in scene.render(0)[1]}
    assert hidden[1].visibility == 1.0
    assert hidden[2].visibility < 0.3
    assert hidden[2].ignore
    assert hidden[2].box == alone[2].box
    assert alone[2].visibility == 1.0


def test_truth_file_keeps_everything(tmp_path: Path) -> None:
    item = TruthObject.judged(7, "car", (10, 20, 110, 80), 0.9, 1280)
    assert not item.ignore
    small = TruthObject.judged(8, "person", (10, 20, 14, 40), 1.0, 1280)
    assert small.ignore
    truth = Truth("a.mp4", 1280, 720, 25, CLASSES, ((item,), (), (item, small)))
    write_truth(tmp_path / "a.truth.json", truth)
    assert load_truth(tmp_path / "a.truth.json") == truth


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('{"version": 99}', encoding="utf-8")
    with pytest.raises(ValueError, match=r"x\.json: not a truth file of version 1"):
        load_truth(tmp_path / "x.json")
