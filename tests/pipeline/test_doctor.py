"""``gstorch doctor`` on this machine, and on worse ones."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import types
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from app import doctor
from pipelines.runtime import Runtime
from tests.gstorch_cli import gstorch

ROOT = Path(__file__).resolve().parents[2]


def lines_about(what: str, output: str) -> str:
    """The line of a finding and the fix below it."""
    lines = output.splitlines()
    index = next(i for i, line in enumerate(lines) if line[6:].startswith(what))
    fix = lines[index + 1] if index + 1 < len(lines) and "->" in lines[index + 1] else ""
    return f"{lines[index]}\n{fix}"


def test_a_machine_that_is_set_up():
    result = gstorch("doctor")
    assert result.code == 0, result.stdout
    assert not [line for line in result.stdout.splitlines() if line.startswith("bad")]
    for what in ("python", "numpy", "gstreamer", "gstreamer1.0-libav", "h264 encoder", "registry cache", "runtime",
                 "plugin path", "gst-launch", "onnxruntime on", "gpu", "broker kafka"):  # fmt: skip
        assert lines_about(what, result.stdout)
    assert result.stderr == ""


def test_client_libraries_of_brokers(monkeypatch):
    find_spec = importlib.util.find_spec
    hidden = ("paho.mqtt", "paho")
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name in hidden else find_spec(name, *rest)
    )
    found = {finding.what: finding for finding in doctor._brokers({})}
    assert list(found) == [
        "broker kafka",
        "broker mqtt",
        "broker amqp",
        "broker redis",
        "broker nats",
        "broker webhook",
    ]
    assert found["broker webhook"].state == f"urllib3 {version('urllib3')}"
    assert found["broker webhook"].level == "ok"
    missing = found["broker mqtt"]
    assert (missing.level, missing.state) == ("note", "no client library; only message stages need it")
    assert missing.fix.endswith("pip install -e '.[mqtt]'")


def test_a_path_that_hides_the_plugins(tmp_path):
    hidden = {"GST_PLUGIN_SYSTEM_PATH": str(tmp_path), "GST_REGISTRY": str(tmp_path / "registry.bin")}
    result = gstorch("doctor", env=hidden)
    assert result.code == 1
    found = lines_about("gstreamer1.0-libav", result.stdout)
    assert found.startswith("bad ")
    assert "missing: avdec_h264, avdec_h265" in found
    assert f"unset GST_PLUGIN_SYSTEM_PATH, which is '{tmp_path}'" in found
    encoder = lines_about("h264 encoder", result.stdout)
    assert encoder.startswith("note")
    assert "apt-get install gstreamer1.0-plugins-ugly" in encoder
    assert str(tmp_path / "registry.bin") in lines_about("registry cache", result.stdout)


def test_a_registry_that_cannot_be_written(monkeypatch, tmp_path):
    registry = tmp_path / "registry.bin"
    registry.touch()
    monkeypatch.setattr(os, "access", lambda *_: False)
    (finding,) = doctor._registry({"GST_REGISTRY": str(registry)})
    assert (finding.level, finding.state) == ("ok", str(registry))
    os.utime(registry, (0, 0))
    (finding,) = doctor._registry({"GST_REGISTRY": str(registry)})
    assert finding.level == "note"
    assert "is older than the plugins and cannot be written" in finding.state


@pytest.mark.skipif(Path(sys.prefix) != ROOT / ".venv", reason="needs the project's .venv")
def test_a_registry_that_remembers_a_failure(monkeypatch, tmp_path):
    """pyinfer could not be imported once: GStreamer does not try again by itself, unless the folder changes.

    In the project's own another test may do that: the first to load a plugin makes ``__pycache__`` there.
    """
    plugins = tmp_path / "elements" / "python"
    (plugins / "__pycache__").mkdir(parents=True)
    for plugin in (ROOT / "elements" / "python").glob("*.py"):
        (plugins / plugin.name).symlink_to(plugin)
    monkeypatch.setattr(doctor, "ROOT", tmp_path)
    registry = tmp_path / "registry.bin"
    environ = dict(os.environ) | {
        "GST_PLUGIN_PATH": str(tmp_path / "elements"),
        "GST_REGISTRY": str(registry),
        "PATH": f"{ROOT}/.venv/bin:{os.environ['PATH']}",
        "VIRTUAL_ENV": str(ROOT / ".venv"),
    }
    (tmp_path / "numpy.py").write_text("raise ImportError('broken on purpose')")
    subprocess.run(["gst-inspect-1.0"], env=environ | {"PYTHONPATH": str(tmp_path)}, capture_output=True, check=False)
    finding = doctor._plugin_path(environ)
    assert finding.level == "note"
    assert "the registry cache is stale" in finding.state
    assert finding.fix.startswith(f"rm '{registry}'")
    registry.unlink()
    assert doctor._plugin_path(environ).level == "ok"
    assert "finds pyinfer in this shell" in doctor._plugin_path(environ).state


def test_a_plugin_path_that_leads_nowhere(tmp_path):
    finding = doctor._plugin_path({"GST_PLUGIN_PATH": f"{tmp_path}/gone", "PATH": os.environ["PATH"]})
    assert (finding.level, f"no folder {tmp_path}/gone" in finding.state) == ("note", True)


def test_what_to_do_about_a_missing_element(monkeypatch, tmp_path):
    environ = {"XDG_CACHE_HOME": str(tmp_path)}
    monkeypatch.setattr(doctor, "_is_installed", lambda package: False)
    assert doctor._how_to_get("gstreamer1.0-libav", environ) == "apt-get install gstreamer1.0-libav"
    monkeypatch.setattr(doctor, "_is_installed", lambda package: True)
    told = doctor._how_to_get("gstreamer1.0-libav", environ)
    assert told.startswith(f"gstreamer1.0-libav is installed: rm '{tmp_path}/gstreamer-1.0/registry.")


def test_python_packages(monkeypatch):
    monkeypatch.setattr(doctor, "requires", lambda _: ["numpy>=999", "no-such-thing>=1", "pytest; extra == 'dev'"])
    found = {finding.what: finding for finding in doctor._packages({})}
    assert found.keys() == {"numpy", "no-such-thing"}
    assert found["numpy"].level == "bad"
    assert found["numpy"].state.endswith(", but >=999 is needed")
    assert found["no-such-thing"].state == "not installed"
    assert "make setup" in found["numpy"].fix


def test_python_packages_of_a_source_tree(monkeypatch):
    """Run without having been installed: pyproject.toml says what is needed."""

    def not_installed(_name: str) -> list[str]:
        raise PackageNotFoundError

    monkeypatch.setattr(doctor, "requires", not_installed)
    found = {finding.what: finding.level for finding in doctor._packages({})}
    assert found["numpy"] == found["pydantic"] == "ok"
    assert "pytest" not in found


def test_the_loaders_packages_and_the_registry_that_remembers_their_absence(monkeypatch):
    monkeypatch.setattr(doctor, "_finds_pyinfer", lambda *_, **__: False)
    monkeypatch.setattr(doctor, "_is_installed", lambda package: package != "libpython3-dev")
    finding = list(doctor._launch(dict(os.environ)))[-1]
    assert finding.fix == f"apt-get install libpython3-dev && rm -f '{ROOT}'/.venv/gst-registry*.bin"


def test_a_gpu_that_nothing_here_can_use(monkeypatch, tmp_path):
    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho 'NVIDIA T4, 550.1'\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else find(name))
    finding = list(doctor._gpu({}))[-1]
    assert (finding.level, "NVIDIA T4, 550.1, not used for inference" in finding.state) == ("note", True)


@pytest.mark.parametrize(
    ("portable", "stand_ins", "level", "text"),
    [
        (True, {"nvstreammux"}, "ok", "portable runtime: portable pyservicemaker; stand-ins: nvstreammux"),
        (False, set(), "ok", "DeepStream runtime: NVIDIA's pyservicemaker and elements"),
        (
            False,
            {"nvtracker"},
            "note",
            "mixed runtime: NVIDIA's pyservicemaker; stand-ins: nvtracker; not tried together",
        ),
    ],
)
def test_the_tier(monkeypatch, portable, stand_ins, level, text):
    runtime = Runtime(types.ModuleType("api"), portable, frozenset(stand_ins))
    monkeypatch.setattr("pipelines.runtime.load_runtime", lambda: runtime)
    (finding,) = doctor._runtime({})
    assert (finding.level, finding.state[: len(text)]) == (level, text)
