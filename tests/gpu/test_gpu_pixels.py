"""Pixels of frames decoded on the GPU: those of the CPU path, bit for bit. Needs what test_gpu_decoding.py needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gi.repository import Gst

torch = pytest.importorskip("torch", reason="needs PyTorch and a CUDA GPU")

from elements.inference.gpu.letterbox import TABLE_COLUMNS, fill_table, letterbox  # noqa: E402
from elements.inference.letterbox import place_all  # noqa: E402
from elements.inference.preprocess import Preprocess  # noqa: E402
from elements.portable.frames import frames_of  # noqa: E402
from tests.gpu.make_clips import INPUT, TEXTURED  # noqa: E402
from tests.gpu.test_gpu_decoding import clips, gpu_decoding, play, sources  # noqa: E402, F401

pytestmark = pytest.mark.gpu

OPTIONS = Preprocess(letterbox="stretch", scale="0-255")


def network_input(planes: Any, fused: bool) -> np.ndarray:
    """A picture as a model gets it, (height, width, 3) uint8."""
    out = torch.empty((1, INPUT[1], INPUT[0], 3), dtype=torch.uint8, device="cuda")
    placements = place_all(np.array([(planes.width, planes.height)]), INPUT, "stretch")
    if fused:
        from elements.inference.gpu.letterbox_triton import letterbox_fused

        table = torch.zeros((1, TABLE_COLUMNS), dtype=torch.int64)
        assert fill_table([planes], placements, table.numpy(), out.device) == 0
        letterbox_fused(table.cuda(), 0, 1, out.permute(0, 3, 1, 2), OPTIONS)
    else:
        letterbox([planes], placements, out.permute(0, 3, 1, 2), OPTIONS)
    return out[0].cpu().numpy()


def difference(a: np.ndarray, b: np.ndarray) -> str:
    d = np.abs(a.astype(np.int16) - b)
    return f"{(d > 0).mean():.4%} of the values differ, by {d.max()} at most, {d.mean():.4f} in the mean"


@pytest.mark.parametrize("name", TEXTURED)
def test_a_model_sees_what_it_sees_on_the_cpu(clips: Path, name: str) -> None:  # noqa: F811
    if not (clips / "inputs.npz").is_file():
        pytest.skip("the clips are of an older `python -m tests.gpu.make_clips`")
    expected = np.load(clips / "inputs.npz")[name]
    found: list[dict[str, np.ndarray]] = []
    places = []

    def look(buffer: Gst.Buffer) -> None:
        (frame,) = frames_of(buffer)
        found.append({"host": frame.resized(*INPUT)})
        planes = frame.device_planes
        places.append(planes and planes[:9])  # without what keeps the frame
        if planes is not None:  # else a software decoder's
            found[-1] |= {
                "fused": network_input(planes, fused=True),
                "plain torch": network_input(planes, fused=False),
            }
            own_size = frame.tensor.cpu().numpy()
            assert np.array_equal(own_size, frame.resized(frame.width, frame.height)), "RGB at its own size"

    play(sources(clips / f"{name}{TEXTURED[name].suffix}"), "! fakesink name=out", look)
    print(name, places[0])
    assert len(found) == len(expected)
    if name == "odd" and places[0] is not None:
        pytest.xfail("NVIDIA's decoder gives the chroma of pictures of odd size a row too low; no other is here")
    for ways, frame in zip(found, expected, strict=True):
        for way, pixels in ways.items():
            assert np.array_equal(pixels, frame), (way, difference(pixels, frame))
