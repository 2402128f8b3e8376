"""Models exchanged on a GPU while batches are on their way: results fit their model, memory stays flat."""

from __future__ import annotations

import queue
import threading

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch and a CUDA GPU")

from elements.inference.config import ModelConfig  # noqa: E402
from elements.inference.frame import ArrayFrame  # noqa: E402
from elements.inference.session import Pending, Session  # noqa: E402
from elements.inference.swap.options import SwapOptions  # noqa: E402
from elements.inference.swap.status import SwapState, SwapStatus  # noqa: E402
from tests.pictures import picture  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]

SWAPS, SOURCES, DEPTH = 30, 4, 3
BOX = (60.0, 40.0, 220.0, 130.0)


def config(size: int, *labels: str) -> ModelConfig:
    return ModelConfig(
        "tests.torch_models:Finder",
        device="cuda",
        precision="fp32",
        layout="yolov8",
        labels=list(labels),
        input_size=(size, size),
    )


def test_thirty_swaps_under_load(caplog):
    models = [config(320, "red", "green", "blue"), config(640, "rot", "grün", "blau")]
    steps: list[SwapStatus] = []
    session = Session(models[0], swap=SwapOptions(keep=0.2), notify=steps.append)
    session.open()
    assert session.overlaps
    frames = [ArrayFrame(picture(640, 360, {0: BOX}, soft=2), source) for source in range(SOURCES)]
    on_their_way: queue.Queue[Pending | None] = queue.Queue(DEPTH)
    stop = threading.Event()
    seen: set[tuple[str, tuple[str, ...]]] = set()
    failures: list[BaseException] = []
    counts = [0, 0]  # submitted, collected

    def submit() -> None:
        while not stop.is_set():
            on_their_way.put(session.submit(frames))
            counts[0] += len(frames)
        on_their_way.put(None)

    def collect() -> None:
        while (pending := on_their_way.get()) is not None:
            try:
                for result in session.collect(pending):
                    counts[1] += 1
                    seen.add((result.names[0], tuple(np.array(result.names)[result.detections.class_ids])))
                    np.testing.assert_allclose(result.detections.boxes, [BOX], atol=1.5)
            except BaseException as error:
                failures.append(error)

    threads = [threading.Thread(target=submit), threading.Thread(target=collect)]
    for thread in threads:
        thread.start()
    reserved = []
    for number in range(SWAPS):
        answer = session.swap(models[(number + 1) % 2]).result(60)
        assert answer.state is SwapState.ACTIVE, answer.reason
        before = counts[1]
        while counts[1] < before + 5 * SOURCES and not failures:
            stop.wait(0.005)
        reserved.append(torch.cuda.memory_reserved())
    stop.set()
    for thread in threads:
        thread.join(30)
    session.close()
    assert failures == []
    assert "cannot run from a CUDA graph" not in caplog.text
    assert counts[0] == counts[1] == session.frames_inferred
    assert seen == {("red", ("red",)), ("rot", ("rot",))}
    print("reserved MiB after each swap:", [size >> 20 for size in reserved])
    assert max(reserved[SWAPS // 2 :]) <= 1.1 * max(reserved[: SWAPS // 2])
