"""DeepStream's nvdsanalytics: its configuration, and what it was seen to do, here at 30 frames/s on 1920x1080."""

from __future__ import annotations

from pathlib import Path

import pytest

from elements.analytics.nvds_config import NvdsConfigError, load_nvds_config
from elements.analytics.nvds_engine import NvdsStream, ObjectInfo, Seen

CONFIG = """
# comment
[property]
enable=1
config-width=1920
config-height=1080
osd-mode=2

[roi-filtering-stream-0]
enable=1
roi-RA=600;0;1000;0;1000;1080;600;1080
class-id=-1

[overcrowding-stream-0]
enable=1
roi-OC=600;0;1000;0;1000;1080;600;1080
object-threshold=2

[line-crossing-stream-0]
enable=1
line-crossing-L1=700;500;900;500;800;0;800;1080

[direction-detection-stream-0]
enable=1
direction-East=100;500;200;500

[line-crossing-stream-1]
enable=0
line-crossing-L2=700;500;900;500;800;0;800;1080
"""
AS_YAML = """
property: {enable: 1, config-width: 1920, config-height: 1080, osd-mode: 2}
roi-filtering-stream-0:
  enable: 1
  roi-RA: 600;0;1000;0;1000;1080;600;1080
  class-id: -1
overcrowding-stream-0: {enable: 1, roi-OC: 600;0;1000;0;1000;1080;600;1080, object-threshold: 2}
line-crossing-stream-0: {enable: 1, line-crossing-L1: 700;500;900;500;800;0;800;1080}
direction-detection-stream-0: {enable: 1, direction-East: 100;500;200;500}
"""
STEP_NS = 33_333_333


def written(tmp_path: Path, text: str = CONFIG, name: str = "analytics.txt") -> Path:
    file = tmp_path / name
    file.write_text(text)
    return file


@pytest.fixture
def stream(tmp_path: Path) -> NvdsStream:
    return NvdsStream(load_nvds_config(written(tmp_path)).streams[0], (1.0, 1.0), 17)


class Walk:
    """One object, frame by frame."""

    def __init__(self, stream: NvdsStream, track_id: int | None = 5) -> None:
        self.stream, self.track_id, self.number = stream, track_id, 0

    def at(self, x: float, y: float = 500.0) -> ObjectInfo:
        self.frame, (info,) = self.stream.process(self.number * STEP_NS, [Seen(2, self.track_id, (x, y))])
        self.number += 1
        return info


# --- configuration ----------------------------------------------------------------------------------------------------


def test_a_key_file_and_yaml_say_the_same(tmp_path):
    config = load_nvds_config(written(tmp_path))
    assert load_nvds_config(written(tmp_path, AS_YAML, "analytics.yml")) == config
    assert (config.width, config.height, config.osd_mode, set(config.streams)) == (1920, 1080, 2, {0})
    rules = config.streams[0]
    assert rules.rois.polygons == {"RA": ((600, 0), (1000, 0), (1000, 1080), (600, 1080))}
    assert (rules.crowds.threshold, rules.lines.extended, rules.lines.mode) == (2, True, "loose")
    assert rules.lines.lines["L1"].way == ((700, 500), (900, 500))
    assert rules.lines.lines["L1"].ends == ((800, 0), (800, 1080))
    assert (rules.directions.vectors, rules.directions.mode) == ({"East": ((100, 500), (200, 500))}, "balanced")


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("roi-RA=600;0;1000;0;1000;1080;600;1080", "roi-RA=600;0;1000;0", 11, "6 or more numbers x;y;x;y… are needed"),
        ("roi-RA=600;0;", "roi-RA=600;a;", 11, "numbers separated by ';' are needed"),
        ("line-crossing-L1=700;500;", "line-crossing-L1=", 21, "8 numbers x;y;x;y… are needed"),
        ("direction-East=100;500;200;500", "direction-East=1;1;1;1", 25, "both points of the direction are the same"),
        ("osd-mode=2", "osd-mode=3", 7, "osd-mode: '3' is not a whole number from 0 to 2"),
        ("class-id=-1", "class-id=car", 12, "class-id: 'car': class numbers separated by ';' are needed, or -1"),
        ("object-threshold=2", "mode", 17, "'mode' is neither [section] nor key=value in one"),
        ("direction-East", "mode=fast\ndirection-East", 25, "mode: 'fast' is not one of loose, balanced, strict"),
    ],
)
def test_mistakes_are_named_with_their_line(tmp_path, old, new, line, message):
    file = written(tmp_path, CONFIG.replace(old, new, 1))
    with pytest.raises(NvdsConfigError) as error:
        load_nvds_config(file)
    assert str(error.value).startswith(f"{file}:{line}: ")
    assert message in str(error.value)


def test_files_that_cannot_be_used(tmp_path):
    with pytest.raises(NvdsConfigError, match="cannot be read"):
        load_nvds_config(tmp_path / "nowhere.txt")
    with pytest.raises(NvdsConfigError, match="no section 'property'"):
        load_nvds_config(written(tmp_path, "[roi-filtering-stream-0]\nenable=1\n"))
    with pytest.raises(NvdsConfigError, match="is not YAML"):
        load_nvds_config(written(tmp_path, "a: [", "a.yml"))


def test_what_has_no_effect_is_named(tmp_path):
    text = CONFIG.replace("object-threshold=2", "time-threshold=5\nobject-treshold=2")
    file = written(tmp_path, text + "[heatmap-stream-0]\nenable=1\n")
    assert load_nvds_config(file).without_effect == (
        f"{file}:17: time-threshold has no effect here",
        f"{file}:18: unknown key 'object-treshold': did you mean 'object-threshold'?",
        f"{file}: section 'heatmap-stream-0' is not known",
    )
    assert load_nvds_config(written(tmp_path)).without_effect == ()


# --- what it does -----------------------------------------------------------------------------------------------------


def test_a_line_is_counted_once_in_the_very_frame_and_one_way(stream):
    walk = Walk(stream)
    for x in range(698, 795, 12):
        walk.at(x)
    assert walk.frame.obj_lc_cum_cnt == {"L1": 0}
    assert walk.at(806).lc_status == ["L1"]
    assert (walk.frame.obj_lc_curr_cnt, walk.frame.obj_lc_cum_cnt) == ({"L1": 1}, {"L1": 1})
    assert walk.at(818).lc_status == []
    assert (walk.frame.obj_lc_curr_cnt, walk.frame.obj_lc_cum_cnt) == ({"L1": 0}, {"L1": 1})
    for x in (*range(818, 600, -12), *range(600, 900, 12)):  # back, and over it again
        walk.at(x)
    assert walk.frame.obj_lc_cum_cnt == {"L1": 1}


def test_the_other_way_never_counts(stream):
    walk = Walk(stream)
    for x in range(1000, 600, -12):
        walk.at(x)
    assert walk.frame.obj_lc_cum_cnt == {"L1": 0}


def test_areas_and_crowds_are_both_in_the_counts(stream):
    frame, infos = stream.process(0, [Seen(2, 1, (700, 500)), Seen(0, None, (900, 500)), Seen(0, 3, (100, 500))])
    assert frame.obj_in_roi_cnt == {"RA": 2, "OC": 2}
    assert (frame.oc_status, frame.obj_cnt, frame.unique_id) == ({"OC": True}, {2: 1, 0: 2}, 17)
    assert [info.roi_status for info in infos] == [["RA"], ["RA"], []]
    assert [info.oc_status for info in infos] == [["OC"], ["OC"], []]
    assert stream.process(STEP_NS, [Seen(2, 1, (700, 500))])[0].oc_status == {"OC": False}


def test_inverse_roi_lists_who_is_outside(tmp_path):
    text = CONFIG.replace("class-id=-1", "inverse-roi=1")
    stream = NvdsStream(load_nvds_config(written(tmp_path, text)).streams[0], (1.0, 1.0), 17)
    frame, infos = stream.process(0, [Seen(2, 1, (700, 500)), Seen(2, 2, (100, 500))])
    assert (frame.obj_in_roi_cnt["RA"], [info.roi_status for info in infos]) == (1, [[], ["RA"]])


def test_class_ids_of_a_section(tmp_path):
    stream = NvdsStream(
        load_nvds_config(written(tmp_path, CONFIG.replace("class-id=-1", "class-id=0;3"))).streams[0], (1.0, 1.0), 17
    )
    frame, _ = stream.process(0, [Seen(2, 1, (700, 500)), Seen(3, 2, (700, 500))])
    assert frame.obj_in_roi_cnt == {"RA": 1, "OC": 2}


def test_direction_and_standing_still(stream):
    walk = Walk(stream)
    assert walk.at(100).dir_status == ""
    assert [walk.at(100 + 6 * i).dir_status for i in range(1, 15)][-1] == "East"
    states = [walk.at(184).obj_status for _ in range(70)]
    assert states.index("STOPPED") in range(46, 60)
    assert walk.at(300).obj_status == ""
    back = Walk(stream, 6)
    assert {back.at(500 - 6 * i).dir_status for i in range(30)} == {""}


def test_untracked_objects_are_in_areas_only(stream):
    walk = Walk(stream, None)
    infos = [walk.at(x) for x in range(698, 900, 12)]
    assert walk.frame.obj_lc_cum_cnt == {"L1": 0}
    assert all(info.roi_status == ["RA"] and not info.dir_status for info in infos)


def test_an_object_is_forgotten_300_ms_after_it_was_seen(stream):
    walk = Walk(stream)
    for x in range(698, 900, 12):
        walk.at(x)
    walk.number += 10
    stream.process(walk.number * STEP_NS, [])
    for x in range(698, 900, 12):
        walk.at(x)
    assert walk.frame.obj_lc_cum_cnt == {"L1": 2}


def test_geometry_is_scaled_to_the_frame(tmp_path):
    stream = NvdsStream(load_nvds_config(written(tmp_path)).streams[0], (0.5, 0.5), 17)
    frame, _ = stream.process(0, [Seen(2, 1, (310, 250)), Seen(2, 2, (510, 250))])
    assert frame.obj_in_roi_cnt["RA"] == 1
