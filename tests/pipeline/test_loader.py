"""elements/env.sh and the loader stubs: gst-launch-1.0 finds every element."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clips import make_clip
from tests.onnx_models import NAMES, finder, save

ROOT = Path(__file__).resolve().parents[2]
STAND_INS = sorted(path.stem.removeprefix("_el_") for path in (ROOT / "elements/portable/python").glob("_el_*.py"))


def shell(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("GST_", "PYTHONPATH"))}
    command = ["bash", "-c", f"source '{ROOT}/elements/env.sh' && {script}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=clean | environment)


@pytest.fixture(scope="module", autouse=True)
def the_project_venv():
    if Path(sys.prefix) != ROOT / ".venv":
        pytest.skip("env.sh activates .venv, which these tests don't run in")


def test_there_is_a_stub_for_each_stand_in():
    from elements.portable.register import register_stand_ins

    assert sorted(register_stand_ins()) == STAND_INS


def test_every_element_is_found():
    checks = " && ".join(f"gst-inspect-1.0 --exists {name}" for name in ["pyinfer", *STAND_INS])
    result = shell(checks)
    assert result.returncode == 0, result.stderr
    assert f"pyinfer and {len(STAND_INS)} stand-ins" in result.stdout
    assert result.stdout.count("\n") == 1


def test_a_launch_line_with_autoplugging(shared_data):
    clip = shared_data / "videos" / "store-aisle_from_preview_gif.mp4"
    result = shell(
        f"gst-launch-1.0 -q uridecodebin uri={clip.as_uri()} ! m.sink_0 nvstreammux name=m batch-size=1 width=480 "
        "height=270 ! nvvideoconvert ! 'video/x-raw(memory:NVMM),format=RGBA' ! nvdsosd ! fakesink"
    )
    assert (result.returncode, result.stderr) == (0, "")


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    found = finder("yolov8", (320, 320), metadata={"names": str(list(NAMES))})
    return save(found, tmp_path_factory.mktemp("model") / "finder.onnx")


def launch_line(model: Path | str, clip: Path) -> str:
    """The line that a plain machine must run as it stands."""
    return (
        "gst-launch-1.0 nvstreammux name=m width=1280 height=720 batch-size=1 batched-push-timeout=33000 "
        "! nvvideoconvert nvbuf-memory-type=0 ! 'video/x-raw(memory:NVMM), format=RGB' "
        f"! pyinfer model-path={model} "
        "! fpsdisplaysink text-overlay=false silent=false sync=false video-sink=fakesink "
        f"uridecodebin uri={clip.as_uri()} ! m.sink_0"
    )


@pytest.mark.parametrize("name", ["clip.mp4", "a clip & more.mp4"])
def test_the_launch_line_of_the_readme(tmp_path, model, name):
    make_clip(tmp_path / name, 320, 240, 10)
    result = shell(launch_line(model, tmp_path / name))
    assert result.returncode == 0, result.stderr
    assert "Got EOS from element" in result.stdout
    assert "CRITICAL" not in result.stderr
    assert "Traceback" not in result.stderr


def test_a_launch_line_with_a_wrong_model_says_so(tmp_path):
    make_clip(tmp_path / "clip.mp4", 320, 240, 10)
    result = shell(launch_line("nowhere.onnx", tmp_path / "clip.mp4"))
    assert result.returncode != 0
    assert "pyinfer0: model 'nowhere.onnx': there is no such file: check model-path" in result.stderr
    assert "Traceback" not in result.stderr


def test_elements_of_nvidia_are_left_alone(tmp_path):
    script = f"GSTORCH_REAL_ELEMENTS='nvdsosd nvstreammux' GST_REGISTRY={tmp_path}/registry gst-inspect-1.0"
    found = shell(script).stdout
    assert "nvtracker:" in found
    assert "nvdsosd:" not in found
