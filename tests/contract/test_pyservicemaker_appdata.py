"""Receivers and feeders: the ends where the application takes or makes buffers."""

from __future__ import annotations

from typing import Any

import pytest

from elements.portable.pyservicemaker import (
    Buffer,
    BufferOperator,
    BufferProvider,
    BufferRetriever,
    Feeder,
    Pipeline,
    Probe,
    Receiver,
)
from tests.batches import MakePipeline, errors_of
from tests.waiting import wait_for


class Retriever(BufferRetriever):
    def __init__(self, result: Any = 1) -> None:
        super().__init__()
        self.result, self.frames = result, 0

    def consume(self, buffer: Buffer) -> Any:
        self.frames += buffer.batch_meta.n_frames
        return self.result


def receiving(make_pipeline: MakePipeline, retriever: BufferRetriever) -> Pipeline:
    pipeline = make_pipeline("videotestsrc", "test_batcher", "appsink")
    pipeline["appsink"].set({"emit-signals": True, "sync": False})
    return pipeline.attach("appsink", Receiver("r", retriever), tips="new-sample")


def test_receiver(make_pipeline: MakePipeline) -> None:
    retriever = Retriever()
    receiving(make_pipeline, retriever).start().wait()
    assert retriever.frames == 6


@pytest.mark.parametrize("result", [None, 1.5])
def test_trap_13_consume_must_return_an_int(make_pipeline: MakePipeline, result: object) -> None:
    pipeline = receiving(make_pipeline, Retriever(result))
    errors = errors_of(pipeline)
    pipeline.start()
    wait_for(lambda: errors)
    assert f"consume() returned {result!r}: an int is needed" in errors[0][1]


def test_trap_14_a_negative_result_is_a_flow_error(make_pipeline: MakePipeline) -> None:
    retriever = Retriever(-1)
    pipeline = receiving(make_pipeline, retriever)
    errors = errors_of(pipeline)
    pipeline.start()
    wait_for(lambda: errors)
    assert errors[0][0] == "videotestsrc"
    assert retriever.frames == 2


def test_trap_18_receivers_and_feeders_need_signal_names(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline("appsink")
    for tips in ("", "no-such-signal", "need-data"):
        with pytest.raises(RuntimeError, match=r"^Signal connect failure$"):
            pipeline.attach("appsink", Receiver("r", Retriever()), tips=tips)


def test_feeder(make_pipeline: MakePipeline) -> None:
    class Provider(BufferProvider):
        def __init__(self) -> None:
            super().__init__()
            self.script: list[list[int] | None] = [[1, 2], [], [3, 4], None]

        def generate(self, size: int) -> Buffer:
            step = self.script.pop(0)
            return Buffer() if step is None else Buffer(step)

    class Counting(BufferOperator):
        count = 0

        def handle_buffer(self, buffer: Buffer) -> bool:
            self.count += 1
            return True

    counting = Counting()
    pipeline = make_pipeline("appsrc", "identity", "fakesink").attach("identity", Probe("c", counting))
    pipeline.attach("appsrc", Feeder("f", Provider()), tips="need-data/enough-data").start().wait()
    assert counting.count == 2


def test_trap_13_generate_must_return_a_buffer(make_pipeline: MakePipeline) -> None:
    class Provider(BufferProvider):
        def generate(self, size: int) -> Any:
            return b"bytes"

    pipeline = make_pipeline("appsrc", "fakesink").attach(
        "appsrc", Feeder("f", Provider()), tips="need-data/enough-data"
    )
    errors = errors_of(pipeline)
    pipeline.start()
    wait_for(lambda: errors)
    assert "generate() returned b'bytes': a Buffer is needed" in errors[0][1]
