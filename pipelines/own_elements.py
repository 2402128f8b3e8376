"""Elements of the user's own: Python files that are found by the factory's name.

GStreamer's Python loader does the same outside of gstorch (``python/NAME.py`` in a folder of ``GST_PLUGIN_PATH``), in a
helper process of another Python. Here the file is imported directly, and only when its name is asked for.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path

from elements.base import Gst

DEFAULT_FOLDER = "elements"
OURS = Path(__file__).resolve().parent.parent / "elements"


class OwnElementError(RuntimeError):
    """The file of an element cannot be used. The text names the file and the reason."""


def search_path(environ: Mapping[str, str], current: Path) -> list[Path]:
    """Folders that may hold ``python/NAME.py``: those of ``GST_PLUGIN_PATH``, then ``elements`` in the current one."""
    named = [Path(part) for part in environ.get("GST_PLUGIN_PATH", "").split(":") if part]
    return [folder for folder in [*named, current / DEFAULT_FOLDER] if not folder.resolve().is_relative_to(OURS)]


_SEARCHED = search_path(os.environ, Path.cwd())  # as it was at the start: `hide_python_elements` takes folders away


def own_elements() -> dict[str, Path]:
    """Files by the name of the element that they should hold; the first folder that has one counts."""
    files = [file for folder in reversed(_SEARCHED) for file in sorted((folder / "python").glob("*.py"))]
    return {file.stem.removeprefix("_el_"): file for file in files}


def register_own(factory: str) -> None:
    """Make ``factory`` known to GStreamer if it is not and there is a file for it. Does nothing otherwise.

    Raises:
        OwnElementError: if the file cannot be imported, or offers no such element.
    """
    if Gst.ElementFactory.find(factory) is not None:
        return
    file = own_elements().get(factory)
    if file is None:
        return
    offered = _offered(file)
    if not (isinstance(offered, tuple) and len(offered) == 3 and offered[0] == factory):
        raise OwnElementError(f"{file}: it should end with __gstelementfactory__ = ('{factory}', 0, TheClass)")
    if not Gst.Element.register(None, *offered):
        raise OwnElementError(f"{file}: GStreamer refuses to register '{factory}'")


def _offered(file: Path) -> object:
    spec = importlib.util.spec_from_file_location(f"own_element_{file.stem}", file)
    assert spec is not None and spec.loader is not None  # it is a .py file
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise OwnElementError(f"{file}: {type(error).__name__}: {error}") from error
    return getattr(module, "__gstelementfactory__", None)


def hide_python_elements() -> None:
    """Take folders of Python elements alone out of ``GST_PLUGIN_PATH``. Must run before ``Gst.init``.

    In this process elements are registered directly. A shell that sourced ``elements/env.sh`` would otherwise load ours
    twice, and GStreamer would try to import the user's in a Python that lacks our packages.
    """
    paths = os.environ.get("GST_PLUGIN_PATH", "").split(":")
    ours = [p for p in paths if p and Path(p).resolve().is_relative_to(OURS)]
    kept = [p for p in paths if p and p not in ours and not _only_python(Path(p))]
    if kept != paths:
        os.environ["GST_PLUGIN_PATH"] = ":".join(kept)
    if ours:
        os.environ.pop("GST_REGISTRY", None)  # made by env.sh, with our elements in it


def _only_python(folder: Path) -> bool:
    return (folder / "python").is_dir() and next(folder.rglob("*.so"), None) is None
