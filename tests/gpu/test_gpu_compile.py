"""Networks compiled by torch.compile: the same boxes, in CUDA graphs, also when they take over while running."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch and a CUDA GPU")

from elements.inference.config import ModelConfig  # noqa: E402
from elements.inference.errors import ModelError  # noqa: E402
from elements.inference.gpu.runners import GraphRunner  # noqa: E402
from elements.inference.model import DetectionModel  # noqa: E402
from elements.inference.session import Session  # noqa: E402
from elements.inference.swap.status import SwapState  # noqa: E402
from tests.pictures import NAMES, assert_finds, frame_of  # noqa: E402
from tests.torch_models import FixedFinder, TensorFrame  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU"),
]

SIZE = (1280, 720)


def config(path: str = "tests.torch_models:Finder", **options: Any) -> ModelConfig:
    usual = {"labels": NAMES, "device": "cuda", "input_size": (640, 384), "precision": "fp32"}
    return ModelConfig(path, batch_size=4, **{**usual, "compile": True, **options})


def frames(count: int) -> list[TensorFrame]:
    return [TensorFrame(frame_of(*SIZE).pixels, "cuda", source_id=i) for i in range(count)]


def assert_finds_in_all(found) -> None:
    for detections in found:
        assert_finds(detections, *SIZE)


def test_full_and_smaller_batches() -> None:
    model = DetectionModel(config())
    model.load()
    for count in (4, 3, 4, 1):
        assert_finds_in_all(model.infer(frames(count)))
    assert set(model._device._compiled) == {(4, (640, 384))}
    assert all(isinstance(runner, GraphRunner) for runner in model._device._runners.values())
    model.close()


def test_exported_program(tmp_path) -> None:
    free = ({0: torch.export.Dim("batch", min=1, max=8)},)
    program = torch.export.export(FixedFinder().eval(), (torch.rand(4, 3, 384, 640),), dynamic_shapes=free)
    torch.export.save(program, tmp_path / "finder.pt2")
    model = DetectionModel(config(str(tmp_path / "finder.pt2"), precision="auto", trust=True))
    model.load()
    assert_finds_in_all(model.infer(frames(4)))
    model.close()


def test_torchscript_is_refused(tmp_path) -> None:
    traced = torch.jit.trace(FixedFinder().eval(), torch.rand(4, 3, 384, 640))
    torch.jit.save(traced, tmp_path / "finder.torchscript")
    with pytest.raises(ModelError, match="cannot read TorchScript: export"):
        DetectionModel(config(str(tmp_path / "finder.torchscript"))).load()


def test_it_takes_over_while_running() -> None:
    """More swaps than torch's compiler keeps versions of a function (8)."""
    session = Session(config(compile=False))
    session.open()
    for number in range(10):
        assert_finds_in_all(result.detections for result in session.collect(session.submit(frames(4))))
        answer = session.swap(config(input_size=(640, 384 + 32 * (number % 3)))).result(120)
        assert answer.state is SwapState.ACTIVE, answer.reason
    assert_finds_in_all(result.detections for result in session.collect(session.submit(frames(4))))
    session.close()
