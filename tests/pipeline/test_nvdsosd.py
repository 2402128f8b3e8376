"""nvdsosd and nvosdbin on surfaces, inside of GStreamer."""

import numpy as np
import pytest
from gi.repository import GLib

from elements.base import Gst
from elements.portable import osd
from elements.portable.carrier import batch_of, new_batch_buffer
from elements.portable.meta import BatchMeta, DisplayMeta, FrameMeta, ObjectMeta
from elements.portable.nvdsosd import FACTORIES
from elements.portable.surface import Surface
from tests.media import message_of
from tests.waiting import LIMIT_S

CAPS = "video/x-raw(memory:NVMM), format=RGBA, width=64, height=48, framerate=10/1"


@pytest.fixture(scope="module", autouse=True)
def _registered() -> None:
    for name, element in FACTORIES.items():
        if Gst.ElementFactory.find(name) is None:
            Gst.Element.register(None, name, 0, element)


class Run:
    """``appsrc ! DESCRIPTION ! appsink``; buffers go in and come out one by one."""

    def __init__(self, description: str, caps: str = CAPS) -> None:
        self.pipeline = Gst.parse_launch(f'appsrc name=in format=time caps="{caps}" ! {description} ! appsink name=out')
        self.pipeline.set_state(Gst.State.PLAYING)

    def __enter__(self) -> "Run":
        return self

    def __exit__(self, *exc: object) -> None:
        self.pipeline.set_state(Gst.State.NULL)

    def through(self, batch: BatchMeta) -> BatchMeta:
        self.pipeline.get_by_name("in").emit("push-buffer", new_batch_buffer(batch, 0, 0))
        return self.sample("out")

    def sample(self, sink: str) -> BatchMeta:
        sample = self.pipeline.get_by_name(sink).emit("try-pull-sample", int(LIMIT_S * Gst.SECOND))
        assert sample is not None, self.error()
        batch = batch_of(sample.get_buffer())
        assert batch is not None
        return batch

    def error(self) -> str:
        return message_of(self.pipeline, Gst.MessageType.ERROR).parse_error()[0].message


def boxed(left: float, tint: tuple[float, float, float]) -> ObjectMeta:
    item = ObjectMeta(class_id=3, unique_component_id=1)
    item.rect.left, item.rect.top, item.rect.width, item.rect.height = left, 10.0, 20.0, 20.0
    item.rect.border_width, item.rect.border_color = 2, osd.Color(*tint, 1.0)
    return item


def batch_with(*frames_objects: list[ObjectMeta]) -> BatchMeta:
    batch = BatchMeta(max_frames=len(frames_objects))
    for number, objects in enumerate(frames_objects):
        batch.frames.append(FrameMeta(number, number, number, objects=objects))
        batch.surfaces.append(Surface.of_array(np.full((48, 64, 3), 50, np.uint8)))
    return batch


def test_each_frame_of_a_batch_gets_its_own_boxes() -> None:
    with Run("nvdsosd") as run:
        out = run.through(batch_with([boxed(4, (1.0, 0.0, 0.0))], [boxed(30, (0.0, 1.0, 0.0))]))
    first, second = (surface.rgb() for surface in out.surfaces)
    assert first[20, 4].tolist() == first[20, 23].tolist() == [255, 0, 0]
    assert second[20, 30].tolist() == second[20, 49].tolist() == [0, 255, 0]
    assert first[20, 30].tolist() == second[20, 4].tolist() == [50, 50, 50]


class NoPixels:
    """A surface that must not be asked for pixels."""

    def share(self) -> "NoPixels":  # happens when the buffer is still held here and so passed on as a copy
        return self

    def __getattr__(self, name: str) -> object:
        raise AssertionError(f"nothing is to be drawn, but the surface was asked for {name}")


def test_no_pixels_are_made_when_there_is_nothing_to_draw() -> None:
    batch = BatchMeta(1, [FrameMeta(objects=[ObjectMeta(label="no box, no text")], displays=[DisplayMeta()])])
    batch.surfaces = [NoPixels()]  # type: ignore[list-item]
    with Run("nvdsosd") as run:
        run.through(batch)
    batch = batch_with([boxed(4, (1.0, 0.0, 0.0))])
    batch.surfaces = [NoPixels()]  # type: ignore[list-item]
    with Run("nvdsosd display-bbox=false") as run:
        run.through(batch)


def test_a_branch_that_draws_leaves_the_other_branch_clean() -> None:
    description = "tee name=t ! queue ! nvdsosd ! appsink name=drawn t. ! queue"
    with Run(description) as run:
        out = run.through(batch_with([boxed(4, (1.0, 0.0, 0.0))]))
        drawn = run.sample("drawn")
    assert drawn.surfaces[0].rgb()[20, 4].tolist() == [255, 0, 0]
    assert out.surfaces[0].rgb()[20, 4].tolist() == [50, 50, 50]


def test_masks_only_when_asked_for() -> None:
    for setting, expected in (("", 50), ("display-mask=true", 152)):
        item = boxed(4, (1.0, 0.0, 0.0))
        item.mask.mask_array = np.ones((2, 2), np.float32)
        with Run(f"nvdsosd {setting}") as run:
            assert run.through(batch_with([item])).surfaces[0].rgb()[20, 14, 0] == expected


def test_clock_is_drawn_on_every_frame_in_its_colour() -> None:
    with Run("nvdsosd display-clock=true clock-font-size=10 clock-color=0x00FF00FF x-clock-offset=2") as run:
        picture = run.through(batch_with([])).surfaces[0].rgb()
    assert (picture[..., 1] > 200).any()
    assert (picture[..., 0] <= 50).all()


def test_blur_hides_the_objects_of_a_class() -> None:
    noise = np.random.default_rng(3).integers(0, 256, (48, 64, 3), dtype=np.uint8)
    for classes, kept in (("1,3", False), ("1,4;2,3", True)):
        batch = batch_with([boxed(4, (1.0, 0.0, 0.0))])
        batch.surfaces = [Surface.of_array(noise.copy())]
        with Run(f'nvdsosd display-bbox=false blur-on-gie-class-ids="{classes}"') as run:
            inside = run.through(batch).surfaces[0].rgb()[14:26, 8:20]
        assert np.array_equal(inside, noise[14:26, 8:20]) == kept


def test_settings_can_change_while_playing() -> None:
    with Run("nvdsosd name=osd") as run:
        assert run.through(batch_with([boxed(4, (1.0, 0.0, 0.0))])).surfaces[0].rgb()[20, 4, 0] == 255
        run.pipeline.get_by_name("osd").set_property("display-bbox", False)
        assert run.through(batch_with([boxed(4, (1.0, 0.0, 0.0))])).surfaces[0].rgb()[20, 4, 0] == 50


def test_bad_blur_setting_is_an_error() -> None:
    with Run("nvdsosd blur-on-gie-class-ids=1;2") as run:
        assert 'blur-on-gie-class-ids="1;2": pairs "component,class" are needed' in run.error()


def test_formats_as_deepstream_takes_them() -> None:
    rgb = CAPS.replace("RGBA", "RGB")
    with pytest.raises(GLib.Error, match="could not link"):
        Gst.parse_launch(f"fakesrc ! {rgb} ! nvdsosd ! fakesink")
    with Run("nvosdbin", rgb) as run:
        assert run.through(batch_with([boxed(4, (1.0, 0.0, 0.0))])).surfaces[0].rgb()[20, 4, 0] == 255


def test_properties_as_deepstream_has_them() -> None:
    element = Gst.ElementFactory.make("nvdsosd")
    assert int(element.get_property("process-mode")) == 1
    assert element.get_property("display-text") is True
    assert element.get_property("display-bbox") is True
    assert element.get_property("display-mask") is False
    assert element.find_property("display-mask").default_value is True
    assert element.get_property("clock-font-size") == 12
    assert element.find_property("clock-font-size").maximum == 60
    element.set_property("process-mode", "MODE_CPU")
    assert int(element.get_property("process-mode")) == 0
