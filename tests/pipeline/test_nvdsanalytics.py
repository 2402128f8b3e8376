"""The nvdsanalytics element: what it attaches, writes and draws, and how it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from elements.base import Gst
from elements.portable.carrier import batch_of, new_batch_buffer
from elements.portable.meta import BatchMeta, FrameMeta, ObjectMeta
from elements.portable.nvdsanalytics import NvDsAnalytics
from elements.portable.pyservicemaker.metadata import BatchMetadata
from tests.unit.test_nvds_analytics import CONFIG, STEP_NS

CAPS = "video/x-raw(memory:NVMM), format=NV12, width=1920, height=1080, framerate=30/1"


class Harness:
    """Pushes batches into the element and keeps what comes out."""

    def __init__(self, config: Path | None) -> None:
        self.element = NvDsAnalytics()
        if config is not None:
            self.element.set_property("config-file", str(config))
        self.pipeline = Gst.Pipeline.new()
        self.pipeline.add(self.element)
        self.out: list[Gst.Buffer] = []
        drain = self._drain = Gst.Pad.new("drain", Gst.PadDirection.SINK)
        drain.set_chain_function(self._chain)
        drain.set_active(True)
        self.element.get_static_pad("src").link(drain)
        self.sink = self.element.get_static_pad("sink")
        self.number = 0

    def _chain(self, _pad: Gst.Pad, _parent: object, buffer: Gst.Buffer) -> Gst.FlowReturn:
        self.out.append(buffer)
        return Gst.FlowReturn.OK

    def start(self) -> Harness:
        assert self.pipeline.set_state(Gst.State.PLAYING) != Gst.StateChangeReturn.FAILURE, self.error()
        self.sink.send_event(Gst.Event.new_stream_start("test"))
        self.sink.send_event(Gst.Event.new_caps(Gst.Caps.from_string(CAPS)))
        segment = Gst.Segment()
        segment.init(Gst.Format.TIME)
        self.sink.send_event(Gst.Event.new_segment(segment))
        return self

    def error(self) -> tuple[str, str, int]:
        error, _ = self.pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR).parse_error()
        return error.message, error.domain, error.code

    def push(self, *objects: ObjectMeta, pad: int = 0) -> FrameMeta:
        frame = FrameMeta(
            pad, pad, 0, self.number, self.number * STEP_NS, pipeline_width=1920, pipeline_height=1080
        )  # fmt: skip
        frame.objects = list(objects)
        self.number += 1
        assert self.sink.chain(new_batch_buffer(BatchMeta(1, [frame]), frame.buffer_pts, 0)) == Gst.FlowReturn.OK
        return batch_of(self.out[-1]).frames[0]

    def stop(self) -> None:
        self.pipeline.set_state(Gst.State.NULL)


def van(x: float, object_id: int = 5) -> ObjectMeta:
    """A van whose bottom centre is at (x, 500)."""
    item = ObjectMeta(class_id=2, object_id=object_id, label="van")
    item.rect.left, item.rect.top, item.rect.width, item.rect.height = x - 50, 400, 100, 100
    item.text.display_text = "van 5 "
    return item


@pytest.fixture
def make(tmp_path):
    made = []

    def start(text: str = CONFIG) -> Harness:
        file = tmp_path / "analytics.txt"
        file.write_text(text)
        made.append(Harness(file).start())
        return made[-1]

    yield start
    for harness in made:
        harness.stop()


def test_metadata_text_and_border_are_as_nvidias(make):
    harness = make()
    for x in range(626, 795, 12):
        harness.push(van(x))
    frame = harness.push(van(806))
    (item,) = frame.objects
    assert item.text.display_text == "van 5  ROI:RA DIR:East  LC:L1 "
    border = item.rect.border_color
    assert (border.r, border.g, border.b, border.a) == (0, 1, 1, 1)
    batch = BatchMetadata(BatchMeta(1, [frame]))
    for seen in batch.frame_items:
        for user in seen.nvdsanalytics_frame_items:
            found = user.as_nvdsanalytics_frame()
            assert (user.meta_type, found.obj_lc_cum_cnt, found.obj_in_roi_cnt) == (32, {"L1": 1}, {"RA": 1, "OC": 1})
        for thing in seen.object_items:
            for user in thing.nvdsanalytics_obj_items:
                info = user.as_nvdsanalytics_obj()
                assert (user.meta_type, info.lc_status, info.dir_status, info.unique_id) == (33, ["L1"], "East", 17)
                with pytest.raises(RuntimeError, match="no NvDsAnalyticsFrameMeta"):
                    user.as_nvdsanalytics_frame()


def test_rules_are_drawn_with_their_counts(make):
    (display,) = make().push(van(700)).displays
    assert [text.display_text for text in display.texts] == ["RA=1", "OC=1", "L1=0", "East"]
    assert len(display.lines) == 4 + 4 + 1 + 1
    colours = [(line.color.r, line.color.g, line.color.b) for line in display.lines]
    assert colours[0] == (1, 1, 0)
    assert colours[-2:] == [(0, 1, 0), (1, 0, 0)]


def test_osd_mode_0_leaves_drawing_alone(make):
    frame = make(CONFIG.replace("osd-mode=2", "osd-mode=0")).push(van(700))
    assert frame.displays == []
    assert frame.objects[0].text.display_text == "van 5 "
    assert frame.objects[0].user[0].data.roi_status == ["RA"]


def test_a_pad_without_a_section_has_only_its_objects_counted(make):
    frame = make().push(van(700), pad=3)
    assert frame.user[0].data.obj_cnt == {2: 1}
    assert (frame.displays, frame.objects[0].user) == ([], [])


def test_objects_of_nothing_have_no_metadata(make):
    assert make().push(van(100)).objects[0].user == []


def test_it_does_not_start_without_a_good_file(tmp_path):
    for config, reason in ((None, "config-file is not set"), (tmp_path / "nowhere.txt", "cannot be read")):
        harness = Harness(config)
        assert harness.pipeline.set_state(Gst.State.PLAYING) == Gst.StateChangeReturn.FAILURE
        message, domain, code = harness.error()
        assert "Configuration file parsing failed" in message
        assert reason in message
        assert (domain, code) == ("gst-library-error-quark", int(Gst.LibraryError.SETTINGS))
        harness.stop()


def test_a_buffer_without_a_batch_is_an_error(make):
    harness = make()
    buffer = Gst.Buffer.new_allocate(None, 64, None)
    assert harness.sink.chain(buffer) == Gst.FlowReturn.ERROR
    message, domain, _ = harness.error()
    assert "NvDsBatchMeta not found for input buffer." in message
    assert domain == "gst-stream-error-quark"


def test_disabled_it_does_nothing(make):
    harness = make()
    harness.element.set_property("enable", False)
    assert harness.push(van(700)).user == []
