"""Libraries report nothing about their use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.onnx_models import finder, save

ROOT = Path(__file__).resolve().parents[2]
LOAD = """
import sys
from elements.inference.config import ModelConfig
from elements.inference.model import open_model
model = open_model(ModelConfig(sys.argv[1], labels=("a", "b", "c")))
model.load()
model.close()
"""


def test_onnx_runtime_keeps_no_id_of_the_machine(tmp_path: Path) -> None:
    """It would, in ~/.cache, to send it along with what it reports."""
    home = tmp_path / "home"
    home.mkdir()
    model = save(finder("yolov8", (64, 64)), tmp_path / "m.onnx")
    environment = {k: v for k, v in os.environ.items() if k not in ("ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME")}
    environment |= {"HOME": str(home), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", LOAD, model], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [path for path in home.rglob("*") if path.is_file()] == []
