"""The way of docs/live-changes.md to run a pipeline from a program of one's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.clips import make_clip

ROOT = Path(__file__).parents[2]
PROGRAM = """
import threading
from pipelines.control import SetConfidence, SwapModel
from pipelines.definition import load_definition
from pipelines.plan import make_plan, open_runner

runner = open_runner(make_plan(load_definition("entrance.yaml")))
threading.Thread(target=runner.run).start()
"""
DEFINITION = """
pipeline: entrance
sources: [clip.mp4]
stages: [{infer: {model: "tests.own_models:Good"}}]
outputs: [{events: {path: e.jsonl}}]
"""


def test_nothing_must_be_set_up_first(tmp_path):
    make_clip(tmp_path / "clip.mp4", 64, 64, 3)
    (tmp_path / "entrance.yaml").write_text(DEFINITION)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "e.jsonl").read_text().splitlines()) == 3
