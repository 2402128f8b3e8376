"""Prompts on frames of the GPU's decoder: the batch that is held for answers must not leave it without frames."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from elements.portable import nvidia
from pipelines.definition import definition_from_mapping
from pipelines.plan import make_plan, open_runner
from tests.clips import drifting
from tests.gpu.make_clips import FRAMES, SIZES
from tests.gstorch_cli import events
from tests.pictures import NAMES
from tests.vlm_server import Says, VlmServer

pytestmark = pytest.mark.gpu
pytest.importorskip("torch", reason="needs PyTorch and a CUDA GPU")
pytest.importorskip("urllib3")

NAME = "plain"
COLORS = ((255, 0, 0), (0, 255, 0))


@pytest.fixture(scope="module")
def clip() -> Path:
    if not nvidia.decodes_on_gpu():
        pytest.skip("needs a CUDA GPU and NVIDIA's decoder wheel on GST_PLUGIN_PATH")
    clip = Path(os.environ.get("GSTORCH_GPU_CLIPS", ""), f"{NAME}.mp4")
    if not clip.is_file():
        pytest.skip("GSTORCH_GPU_CLIPS names no folder made by `python -m tests.gpu.make_clips`")
    return clip


@pytest.mark.parametrize(("sources", "batch"), [(1, 16), (8, 8), (8, 16)])
def test_no_frame_is_missed_while_answers_are_slow(clip: Path, tmp_path: Path, sources: int, batch: int) -> None:
    out = tmp_path / "events.jsonl"
    infer = {"model": "tests.torch_models:Finder", "labels": list(NAMES), "layout": "yolov8", "input_size": 640}
    ask = {"name": "seen", "model": "vl", "per": "frame", "text": "What is there?", "trigger": {"interval": "400ms"}}
    with VlmServer(Says("rectangles", slow=0.5)) as server:
        # two stages: each holds a batch of its own
        prompts = [{"prompt": {**ask, "name": name, "endpoint": server.url}} for name in ("first", "second")]
        definition = {
            "pipeline": "prompts",
            "sources": [{"name": f"s{i}", "uri": str(clip)} for i in range(sources)],
            "mux": {"batch_size": batch},
            "stages": [{"infer": {**infer, "device": "cuda", "confidence": 0.5}}, *prompts],
            "outputs": [{"events": {"path": str(out)}}],
            "runtime": {"stall_timeout": "15s"},
        }
        runner = open_runner(make_plan(definition_from_mapping(definition, Path.cwd())))
        outcome = runner.run()
    assert (outcome.error, runner.exit_code()) == ("", 0)
    for i in range(sources):
        assert [event["frame"] for event in events(out, f"s{i}")] == list(range(FRAMES))
    counts = runner.element_counts("pyprompt")
    assert counts["first"]["answered"] == counts["second"]["answered"] == len(server.asked) / 2 >= sources
    width, height = SIZES[NAME]
    boxes = drifting(width, height)(0)
    picture = server.asked[0].pictures[0]
    assert picture.shape == (height, width, 3)
    for number, (x1, y1, x2, y2) in boxes.items():
        middle = picture[round((y1 + y2) / 2), round((x1 + x2) / 2)]
        assert abs(middle.astype(int) - COLORS[number]).max() < 40
