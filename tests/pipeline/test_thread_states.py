"""The interpreter's state of streaming threads: kept from call to call, gone when they have ended."""

import ctypes
import threading
from collections.abc import Callable

from elements.base import Gst
from pipelines.thread_states import on_stream_status

FRAMES = 20


def python_threads() -> int:
    """How many thread states the interpreter has."""
    api = ctypes.pythonapi
    for function in (api.PyInterpreterState_ThreadHead, api.PyThreadState_Next):
        function.argtypes, function.restype = [ctypes.c_void_p], ctypes.c_void_p
    api.PyInterpreterState_Get.restype = ctypes.c_void_p
    state, count = api.PyInterpreterState_ThreadHead(api.PyInterpreterState_Get()), 0
    while state:
        state, count = api.PyThreadState_Next(state), count + 1
    return count


def run(pipeline: Gst.Pipeline, look: Callable[[], None]) -> None:
    """Play a pipeline to its end with a probe behind the element ``look``."""
    bus = pipeline.get_bus()
    bus.enable_sync_message_emission()
    handler = bus.connect("sync-message::stream-status", on_stream_status, pipeline)

    def probe(_pad: Gst.Pad, _info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
        look()
        return Gst.PadProbeReturn.OK

    pipeline.get_by_name("look").get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, probe)
    pipeline.set_state(Gst.State.PLAYING)
    message = bus.timed_pop_filtered(10 * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    bus.disconnect(handler)
    assert message is not None and message.type == Gst.MessageType.EOS


def test_a_thread_of_the_pipeline_keeps_its_state_until_it_ends() -> None:
    own, calls, fresh = threading.local(), [], []

    def look() -> None:
        calls.append(threading.get_ident())
        if not hasattr(own, "seen"):
            own.seen = True
            fresh.append(threading.get_ident())

    before = python_threads()
    run(Gst.parse_launch(f"fakesrc num-buffers={FRAMES} ! queue ! identity name=look ! fakesink"), look)
    assert len(calls) == FRAMES
    assert fresh == [calls[0]], "what is kept for the thread is there in every call"
    assert python_threads() == before


def test_threads_inside_of_bins_are_left_alone() -> None:
    counts = []
    before = python_threads()
    pipeline = Gst.Pipeline()
    pipeline.add(
        Gst.parse_bin_from_description(f"fakesrc num-buffers={FRAMES} ! queue ! identity name=look ! fakesink", False)
    )
    run(pipeline, lambda: counts.append(python_threads()))
    assert len(counts) == FRAMES
    assert set(counts) == {before + 1}, "that of the call itself"
    assert python_threads() == before
