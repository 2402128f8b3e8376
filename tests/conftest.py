"""Shared by all tests: where the real clips are, and the portable pyservicemaker under its public name."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from pathlib import Path

import pytest

# What GStreamer remembers of its plugins is not shared with other processes: any of them may write that a plugin
# could not be loaded, for example because it had another GST_PLUGIN_PATH.
_registry = tempfile.TemporaryDirectory(prefix="gst-registry-")
os.environ["GST_REGISTRY"] = f"{_registry.name}/registry.bin"

ROOT = Path(__file__).resolve().parent.parent

# What elements/env.sh sets, for the shell that the tests may be started from: they ask for it themselves.
os.environ.pop("GSTORCH_REAL_ELEMENTS", None)
for _name in ("GST_PLUGIN_PATH", "PYTHONPATH"):
    _parts = os.environ.pop(_name, "").split(":")
    _others = [part for part in _parts if part and not Path(part).is_relative_to(ROOT / "elements")]
    if _others:
        os.environ[_name] = ":".join(_others)

import elements  # noqa: E402, F401  before anything loads GStreamer: see elements/__init__.py

# isort: split
from gi.repository import GObject  # noqa: E402

# PyGObject calls its module "gobject", which cannot be imported: pytest-xdist has to, where it receives a warning.
GObject.Warning.__module__ = "gi.repository.GObject"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the real clips and models; tests that need it are skipped, visibly, where it is absent."""
    folder = Path(os.environ.get("GSTORCH_SHARED_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / "videos").is_dir():
        pytest.skip(f"real data not found at {folder} (set GSTORCH_SHARED_DATA)")
    return folder


@pytest.fixture(scope="session")
def pyservicemaker() -> object:
    """The portable pyservicemaker, importable by operators as on a DeepStream machine."""
    return sys.modules.setdefault("pyservicemaker", importlib.import_module("elements.portable.pyservicemaker"))
