"""The ctypes binding against surprises: other layouts, other handles, exit, and traps of the real module.

What may crash runs in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.contract.nvds_double.native import SKIP

pytestmark = pytest.mark.skipif(bool(SKIP), reason=SKIP)

ROOT = Path(__file__).resolve().parents[2]

START = """
    import ctypes, logging, sys
    import numpy as np
    from elements.base import Gst
    Gst.init(None)
    logging.basicConfig(format="%(levelname)s %(message)s")
    from elements.metadata import edit
    from elements.metadata.detections import Detections
    from elements.metadata.nvds import binding, callbacks, handles, layout
    from elements.metadata.placement import Placement
    from elements.metadata.writer import write_detections
    from tests.contract import nvds_double
    from tests.contract.nvds_double import osd
    from tests.contract.nvds_double.batches import FrameSpec, Surfaces
    from tests.contract.nvds_double.native import lib
    from tests.contract.nvds_double.walk import walk

    surfaces = Surfaces([FrameSpec(np.zeros((8, 8, 3), np.uint8), (8, 8))])
    buffer = surfaces.buffer()
    batch_meta = nvds_double.Buffer(buffer).batch_meta

    def write():
        found = Detections(
            np.ones((2, 4)), np.ones(2), np.zeros(2), masks=np.ones((2, 8, 8), bool), attributes=[{"a": "b"}] * 2
        )
        square = Placement.stretched((8, 8), (8, 8))
        for frame_meta in batch_meta.frame_items:
            write_detections(batch_meta, frame_meta, found, square, ["car"], 1, osd)
        return [item["label"] for item in walk(buffer)["frames"][0]["objects"]]
"""


def run(script: str) -> subprocess.CompletedProcess[str]:
    code = textwrap.dedent(START) + textwrap.dedent(script)
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)


OTHER_LAYOUT = """
class Other(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint64),)
binding._POOLS["object_pool"] = Other
"""


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (OTHER_LAYOUT, "NvDsOther has 552 bytes, 8 are expected"),
        ("binding.LIBRARY = 'libnone.so'", "pyservicemaker has not loaded it"),
        ("callbacks.platform.machine = lambda: 'riscv64'", "there is no code for riscv64"),
        ("layout.BATCH_META = 9", "NvDsBatchMeta does not begin as expected"),
    ],
)
def test_an_unknown_library_is_left_alone_with_one_warning(change: str, reason: str) -> None:
    script = """
print(write())
try:
    edit.attach_json(batch_meta, "note", 1)
except edit.EditError as error:
    print(error)
print([(item["mask"], item["classifiers"]) for item in walk(buffer)["frames"][0]["objects"]])
"""
    done = run(f"\n{change}\n{script}")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("WARNING") == 1
    assert f"cannot be used ({reason}). Not written: detector boxes, masks" in done.stderr
    written, refused, extras = done.stdout.splitlines()
    assert written == "['car', 'car']"  # what pyservicemaker can do is done
    assert refused.endswith("cannot be edited on this machine; the warning at start says why")
    assert extras == "[(None, []), (None, [])]"


def test_the_wheel_brings_no_elements_with_it() -> None:
    """Its package puts its plugins on GStreamer's path when it is imported; only its libraries are wanted here."""
    done = run(
        """
        import os
        print("nvidia.deepstream_videodecode" in sys.modules)
        print("deepstream_videodecode" in os.environ.get("GST_PLUGIN_PATH", ""))
        found = Gst.ElementFactory.find("nvvideoconvert")
        print("deepstream_videodecode" in str(found and found.get_plugin().get_filename()))
        """
    )
    assert done.stdout.split() == ["False"] * 3, done.stderr


def test_handles_of_an_unknown_kind_are_left_alone_with_one_warning() -> None:
    """Handles that keep something else behind the object's header, such as a Python object."""
    done = run(
        """
        class Wrapper:
            __slots__ = ("handle",)
            def __init__(self, handle):
                self.handle = handle
            def __getattr__(self, name):
                return getattr(self.handle, name)
        for _ in range(3):
            print(edit.find_editor(Wrapper(batch_meta)))
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["None"] * 3
    assert done.stderr.count("WARNING") == 1
    assert "this pyservicemaker is not known (Wrapper: " in done.stderr


def test_metadata_is_released_after_python_has_ended() -> None:
    """What the C library does at exit: `__cxa_atexit` runs its functions when the interpreter is gone."""
    done = run(
        """
        batch = lib.nvds_create_batch_meta(1)
        ctypes.c_uint32.from_address(batch + 40).value = 1
        handle = nvds_double.metadata.batch_handle(batch)
        for number in range(50):
            edit.attach_json(handle, f"note {number}", "x" * 1000)
        copy = lib.nvds_batch_meta_copy_func(batch, None)
        libc = ctypes.CDLL(None)
        destroy = ctypes.cast(lib.nvds_destroy_batch_meta, ctypes.c_void_p)
        for each in (batch, copy):
            assert getattr(libc, "__cxa_atexit")(destroy, ctypes.c_void_p(each), None) == 0
        """
    )
    assert done.returncode == 0, done.stderr


def test_metadata_is_released_while_others_hold_the_interpreter() -> None:
    """Removing an object locks the batch while its user metadata is released. Were the release function Python's, it
    would wait here for the interpreter lock, which this thread keeps while it waits for the batch."""
    done = run(
        """
        import threading
        def remove():
            for _ in range(200):
                for frame_meta in batch_meta.frame_items:
                    item = batch_meta.acquire_object_meta()
                    edit.attach_json(item, "note", "x" * 1000)
                    frame_meta.append(item)
                    edit.remove_objects(frame_meta, lambda item: True)
        keeping = ctypes.PyDLL("libnvds_meta.so")  # calls keep the interpreter lock, as pyservicemaker's do
        for function in (keeping.nvds_acquire_meta_lock, keeping.nvds_release_meta_lock):
            function.argtypes, function.restype = [ctypes.c_void_p], None
        thread = threading.Thread(target=remove)
        thread.start()
        at = batch_meta._at
        while thread.is_alive():
            keeping.nvds_acquire_meta_lock(at)
            keeping.nvds_release_meta_lock(at)
        print("done")
        """
    )
    assert done.stdout.split() == ["done"], done.stderr


def test_why_texts_are_set_in_the_objects_own_struct() -> None:
    """Assigning ``text_params`` copies the pointer of the text: two objects with one text are freed twice."""
    done = run(
        """
        text = osd.TextParams()
        text.display_text = "shared"
        for frame_meta in batch_meta.frame_items:
            for _ in range(2):
                item = batch_meta.acquire_object_meta()
                item.text_params = text
                frame_meta.append(item)
        """
    )
    assert done.returncode < 0  # killed by a signal
    assert "free" in done.stderr


def test_why_masks_do_not_go_through_pyservicemaker() -> None:
    """``mask_array`` keeps NumPy's pointer, which DeepStream frees."""
    done = run(
        """
        mask = np.ones((100, 100), np.float32)
        for frame_meta in batch_meta.frame_items:
            item = batch_meta.acquire_object_meta()
            item.mask_params.mask_array = mask[10:]
            frame_meta.append(item)
        """
    )
    assert done.returncode < 0
    assert "free" in done.stderr
