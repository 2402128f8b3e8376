"""pymetafilter on the portable runtime and on the real libnvds_meta.so, and what it costs over many buffers."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from elements.base import Gst
from elements.filtering.pymetafilter import PyMetaFilter
from elements.portable.carrier import batch_of, new_batch_buffer
from elements.portable.meta import BatchMeta, FrameMeta
from elements.portable.pyservicemaker.metadata import BatchMetadata
from pipelines.scripted import use_portable_api
from tests.contract.nvds_double.native import SKIP

ROOT = Path(__file__).resolve().parents[2]
LABELS = ["person", "car", "dog", "person"]


def fill(batch_meta):
    """Four objects, whose boxes begin at (10 i, 0)."""
    for frame in batch_meta.frame_items:
        for i, label in enumerate(LABELS):
            made = batch_meta.acquire_object_meta()
            made.class_id, made.confidence, made.label = i, 0.2 + i / 5, label
            made.unique_component_id = 1
            rect = made.rect_params
            rect.left, rect.top, rect.width, rect.height = 10 * i, 0, 8, 8
            frame.append(made)


def seen(batch_meta):
    """(label, class, left) of the objects, in the order in which they were added."""
    items = (item for frame in batch_meta.frame_items for item in frame.object_items)
    return [(item.label, item.class_id, item.rect_params.left) for item in items][::-1]


class Portable:
    def __init__(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pyservicemaker", use_portable_api())
        frame = FrameMeta(source_width=64, source_height=64, pipeline_width=64, pipeline_height=64, buffer_pts=0)
        self.buffer = new_batch_buffer(BatchMeta(1, [frame]), 0, 0)
        fill(self.handle())

    def handle(self):
        return BatchMetadata(batch_of(self.buffer))


class DeepStream:
    def __init__(self, monkeypatch):
        from tests.contract import nvds_double
        from tests.contract.nvds_double.batches import FrameSpec, Surfaces

        monkeypatch.setitem(sys.modules, "pyservicemaker", nvds_double)
        self._surfaces = Surfaces([FrameSpec(np.zeros((64, 64, 3), np.uint8), (64, 64))])
        self.buffer = self._surfaces.buffer()
        fill(self.handle())

    def handle(self):
        from tests.contract.nvds_double import Buffer

        return Buffer(self.buffer).batch_meta


@pytest.fixture(params=[Portable, pytest.param(DeepStream, marks=pytest.mark.skipif(bool(SKIP), reason=SKIP))])
def runtime(request, monkeypatch):
    return request.param(monkeypatch)


def filtered(runtime, **properties):
    element = PyMetaFilter()
    for name, value in properties.items():
        element.set_property(name.replace("_", "-"), value)
    assert element.do_start()
    assert element.do_transform_ip(runtime.buffer) == Gst.FlowReturn.OK
    return element


def test_the_right_objects_go(runtime):
    element = filtered(runtime, drop="dog", confidence=0.3)
    assert seen(runtime.handle()) == [("car", 1, 10), ("person", 3, 30)]
    assert (element.get_property("objects-seen"), element.get_property("objects-removed")) == (4, 2)


def test_names_and_numbers_change_together(runtime):
    filtered(runtime, rename="person:worker;dog:pet", remap="person:9", keep="worker;pet")
    assert seen(runtime.handle()) == [("worker", 9, 0), ("pet", 2, 20), ("worker", 9, 30)]


def test_nothing_to_do_changes_nothing(runtime):
    filtered(runtime)
    assert [label for label, *_ in seen(runtime.handle())] == LABELS


def test_all_may_go(runtime):
    filtered(runtime, keep="nobody")
    assert seen(runtime.handle()) == []


def test_rules_may_change_while_it_runs(runtime, caplog):
    element = filtered(runtime, drop="dog")
    element.set_property("drop", "dog;car")
    assert element.do_transform_ip(runtime.buffer) == Gst.FlowReturn.OK
    assert [label for label, *_ in seen(runtime.handle())] == ["person", "person"]
    element.set_property("regions", "0,0")
    assert "regions: '0,0': a polygon needs three points at least" in caplog.text
    assert element.do_transform_ip(runtime.buffer) == Gst.FlowReturn.OK
    assert [label for label, *_ in seen(runtime.handle())] == ["person", "person"]


MANY = """
    import sys
    import numpy as np
    from tests.contract import nvds_double
    sys.modules["pyservicemaker"] = nvds_double
    from elements.base import Gst
    Gst.init(None)
    from elements.filtering.pymetafilter import PyMetaFilter
    from tests.contract.nvds_double.batches import FrameSpec, Surfaces
    from tests.contract.test_pymetafilter import fill

    pictures = Surfaces([FrameSpec(np.zeros((64, 64, 3), np.uint8), (64, 64))])
    element = PyMetaFilter()
    element.set_property("rename", "car:vehicle")
    element.set_property("keep", "person")
    assert element.do_start()

    def one():
        buffer = pictures.buffer()
        fill(nvds_double.Buffer(buffer).batch_meta)
        assert element.do_transform_ip(buffer) == Gst.FlowReturn.OK

    def resident_kib():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * 4

    for i in range(1000):
        one()
    before = resident_kib()
    for i in range({count}):
        one()
    assert element.get_property("objects-removed") == 2 * (1000 + {count})
    print(resident_kib() - before)
"""


@pytest.mark.skipif(bool(SKIP), reason=SKIP)
def test_removing_half_of_the_objects_of_many_buffers_does_not_grow_the_process():
    script = textwrap.dedent(MANY.replace("{count}", "4000"))
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[-1]) < 128  # KiB
