"""``gstorch doctor``."""

from __future__ import annotations

import importlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path

import typer

ROOT = Path(__file__).resolve().parent.parent
SETUP = "run `make setup` in the project's folder"
PACKAGES = ("numpy", "opencv-python", "onnxruntime", "onnx", "pydantic", "PyYAML", "typer", "rich", "trackers")
ELEMENTS = {
    "uridecodebin": "gstreamer1.0-plugins-base",
    "videoconvert": "gstreamer1.0-plugins-base",
    "qtdemux": "gstreamer1.0-plugins-good",
    "rtspsrc": "gstreamer1.0-plugins-good",
    "mp4mux": "gstreamer1.0-plugins-good",
    "h264parse": "gstreamer1.0-plugins-bad",
    "avdec_h264": "gstreamer1.0-libav",
    "avdec_h265": "gstreamer1.0-libav",
    "x264enc": "gstreamer1.0-plugins-ugly",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. ``level`` is ``ok``, ``note`` (works, with less) or ``bad``; ``fix`` says what to do."""

    level: str
    what: str
    state: str
    fix: str = ""


def doctor() -> None:
    """Check this machine: versions, elements, plugin path, models, GPU. Exit code 1 if it cannot run."""
    findings = list(examine())
    width = max(len(finding.what) for finding in findings)
    for finding in findings:
        typer.echo(f"{finding.level:<4}  {finding.what:<{width}}  {finding.state}")
        if finding.fix:
            typer.echo(f"      {'':<{width}}  -> {finding.fix}")
    if any(finding.level == "bad" for finding in findings):
        raise typer.Exit(1)


def examine() -> Iterator[Finding]:
    """Every check in turn; a check that breaks is a finding too."""
    checks: tuple[Callable[[], Iterator[Finding]], ...] = (
        _python, _gstreamer, _packages, _elements, _runtime, _loader, _models, _gpu,
    )  # fmt: skip
    for check in checks:
        try:
            yield from check()
        except Exception as error:
            yield Finding("bad", check.__name__.strip("_"), f"{type(error).__name__}: {error}", SETUP)


def _python() -> Iterator[Finding]:
    level = "ok" if sys.version_info >= (3, 11) else "bad"
    yield Finding(level, "python", f"{platform.python_version()} ({sys.executable})", "" if level == "ok" else SETUP)


def _gstreamer() -> Iterator[Finding]:
    try:
        import gi

        gi.require_version("Gst", "1.0")
        from gi.repository import Gst
    except (ImportError, ValueError) as error:
        yield Finding("bad", "gstreamer", str(error), f"this Python cannot see Debian's python3-gi: {SETUP}")
        return
    Gst.init(None)
    yield Finding("ok", "gstreamer", f"{Gst.version_string()}, PyGObject {gi.__version__}")


def _packages() -> Iterator[Finding]:
    for package in PACKAGES:
        try:
            yield Finding("ok", package, installed_version(package))
        except PackageNotFoundError:
            yield Finding("bad", package, "not installed", SETUP)


def _elements() -> Iterator[Finding]:
    from gi.repository import Gst

    for factory, package in ELEMENTS.items():
        if Gst.ElementFactory.find(factory):
            yield Finding("ok", factory, "found")
        else:
            yield Finding("bad", factory, "missing", f"apt-get install {package}")


def _runtime() -> Iterator[Finding]:
    from pipelines.runtime import load_runtime

    runtime = load_runtime()
    yield Finding("ok", "runtime", runtime.describe())


def _loader() -> Iterator[Finding]:
    """Whether ``gst-inspect-1.0 pyinfer`` works in a shell that sourced elements/env.sh."""
    inspect = shutil.which("gst-inspect-1.0")
    if inspect is None:
        yield Finding("note", "gst-launch use", "gst-inspect-1.0 missing", "apt-get install gstreamer1.0-tools")
        return
    path = os.environ.get("GST_PLUGIN_PATH", "")
    yield Finding("ok", "plugin path", path or "not set (only gst-launch needs it)")
    script = f'source "{ROOT}/elements/env.sh" >/dev/null && exec gst-inspect-1.0 --exists pyinfer'
    found = subprocess.run(["bash", "-c", script], capture_output=True, timeout=60, check=False)
    if found.returncode == 0:
        yield Finding("ok", "gst-launch use", f"source {ROOT}/elements/env.sh")
    else:
        packages = "gstreamer1.0-python3-plugin-loader libpython3-dev"
        fix = f"apt-get install {packages}, or delete .venv/gst-registry*.bin and try again"
        yield Finding("note", "gst-launch use", "pyinfer is not found by GStreamer's Python loader", fix)


def _models() -> Iterator[Finding]:
    from elements.inference.config import ModelConfig
    from elements.inference.model import open_model

    for path in sorted((ROOT / "configs" / "models").glob("*.onnx")):
        model = open_model(ModelConfig(path=str(path)))
        model.load()
        model.close()
        yield Finding("ok", f"model {path.stem}", f"loads ({path.stat().st_size / 2**20:.1f} MiB)")


def _gpu() -> Iterator[Finding]:
    onnxruntime = importlib.import_module("onnxruntime")
    providers = ", ".join(p.removesuffix("ExecutionProvider") for p in onnxruntime.get_available_providers())
    yield Finding("ok", "onnxruntime runs on", providers)
    smi = shutil.which("nvidia-smi")
    if smi is None:
        yield Finding("note", "gpu", "no NVIDIA driver; everything runs on the CPU")
        return
    query = [smi, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    answer = subprocess.run(query, capture_output=True, text=True, timeout=30, check=False)
    yield Finding("ok" if answer.returncode == 0 else "note", "gpu", answer.stdout.strip() or answer.stderr.strip())
