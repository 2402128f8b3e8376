"""The fused letterbox in Triton's interpreter: its arithmetic, without a GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

SCRIPT = """
import torch
from tests.device_checks import LETTERBOXES, check_planar_letterbox
options, dtype = LETTERBOXES[int(NUMBER)], torch.float16
check_planar_letterbox("cpu", options, dtype, fused=True)
"""


@pytest.mark.parametrize("number", [1, 4])
def test_planes_become_what_the_host_makes_of_them(number: int) -> None:
    root = Path(__file__).parents[2]
    script = SCRIPT.replace("NUMBER", str(number))
    result = subprocess.run(
        [sys.executable, "-c", script],
        cwd=root,
        env={"TRITON_INTERPRET": "1", "PYTHONPATH": str(root), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
