"""Nothing of ours leans on what only our pyservicemaker has; neither it nor the double has more than NVIDIA's."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from elements.portable import pyservicemaker as portable
from elements.portable.pyservicemaker import _pydeepstream
from tests.contract.nvds_double.native import SKIP
from tests.contract.pyservicemaker_surface import CLASSES, EXTENSIONS
from tests.contract.surface_check import Uses, uses_of

ROOT = Path(__file__).resolve().parents[2]

_HANDLES = {"batch_meta": "BatchMetadata", "frame_meta": "FrameMetadata", "object_meta": "ObjectMetadata"}

# where pyservicemaker's objects enter each file of ours
ROOTS: dict[str, dict[str, str]] = {
    "elements/filtering/batch.py": {
        "batch_meta": "BatchMetadata",
        "frame": "FrameMetadata",
        "item": "ObjectMetadata",
    },
    "elements/filtering/pymetafilter.py": {"self._api": "module"},
    "elements/frames.py": {
        "self._api": "module",
        "self._buffer": "Buffer",
        "self._surface": "Tensor",
        "meta": "FrameMetadata",
    },
    "elements/frames_at_work.py": {"self._api": "module"},
    "elements/metadata/edit.py": {"object_meta": "ObjectMetadata", "frame_meta": "FrameMetadata"},
    "elements/metadata/writer.py": {**_HANDLES, "osd": "osd"},
    "elements/objects_at_work.py": {
        "self._api": "module",
        "batch_meta": "BatchMetadata",
        "frame_meta": "FrameMetadata",
        "item": "ObjectMetadata",
    },
    "elements/prompting/batch.py": {"self._api": "module", "meta": "FrameMetadata", "item": "ObjectMetadata"},
    "elements/prompting/pyprompt.py": {},
    "elements/pyinfer.py": {"self._api": "module"},
    "pipelines/assemble.py": {"runtime.api": "module", "pipeline": "Pipeline"},
    "pipelines/operators/analyze.py": {"batch_meta": "BatchMetadata", "frame": "FrameMetadata"},
    "pipelines/operators/angles.py": {"batch_meta": "BatchMetadata", "item": "ObjectMetadata", "rect": "Rect"},
    "pipelines/operators/base.py": {"batch_meta": "BatchMetadata"},
    "pipelines/operators/counters.py": {"batch_meta": "BatchMetadata"},
    "pipelines/operators/drawn_rules.py": {"batch_meta": "BatchMetadata"},
    "pipelines/operators/event_objects.py": {"frame": "FrameMetadata", "item": "ObjectMetadata"},
    "pipelines/operators/events.py": {"batch_meta": "BatchMetadata"},
    "pipelines/operators/exchange.py": {
        "batch_meta": "BatchMetadata",
        "frame_meta": "FrameMetadata",
        "item": "ObjectMetadata",
    },
    "pipelines/operators/keypoints.py": {"batch_meta": "BatchMetadata"},
    "pipelines/operators/message.py": {
        "batch_meta": "BatchMetadata",
        "frame": "FrameMetadata",
        "item": "ObjectMetadata",
    },
    "pipelines/operators/nvds_analytics.py": {
        "batch_meta": "BatchMetadata",
        "found": "AnalyticsFrameMeta",
        "info": "AnalyticsObjInfo",
    },
    "pipelines/operators/recorders.py": {"batch_meta": "BatchMetadata"},
    "pipelines/operators/style.py": {"batch_meta": "BatchMetadata", "item": "ObjectMetadata"},
    "pipelines/operators/user.py": {"batch_meta": "BatchMetadata"},
    "pipelines/runner.py": {"self.assembly.pipeline": "Pipeline"},
}

# on one runtime by intent: the editors of each, and the kit that runs operators without any
ON_ONE_RUNTIME = {
    "elements/metadata/nvds/editor.py",
    "elements/metadata/plain_editor.py",
    "pipelines/scripted.py",
    "pipelines/testing.py",
}


def checked(name: str) -> Uses:
    return uses_of((ROOT / name).read_text(encoding="utf-8"), ROOTS[name])


@pytest.mark.parametrize("name", ROOTS)
def test_what_we_use_exists(name: str) -> None:
    uses = checked(name)
    assert uses.problems == []
    assert uses.roots == set(ROOTS[name]), "objects enter elsewhere now: bring ROOTS up to date"


@pytest.mark.parametrize("name", ROOTS)
def test_extensions_are_asked_for_before_they_are_used(name: str) -> None:
    assert checked(name).unguarded == []


def test_the_check_sees_what_we_use() -> None:
    members = set().union(*(checked(name).members for name in ROOTS))
    assert {
        ("module", "Pipeline"),
        ("Pipeline", "attach"),
        ("Buffer", "extract"),
        ("Tensor", "shape"),
        ("BatchMetadata", "acquire_object_meta"),
        ("FrameMetadata", "append"),
        ("ObjectMetadata", "text_params"),
        ("TextParams", "display_text"),
        ("Font", "color"),
    } <= members


def test_no_file_uses_pyservicemaker_unseen() -> None:
    files = [path for folder in ("app", "elements", "pipelines") for path in (ROOT / folder).rglob("*.py")]
    ours = {str(p.relative_to(ROOT)) for p in files if not p.is_relative_to(ROOT / "elements/portable")}
    marks = (
        "from pyservicemaker",
        "import pyservicemaker",
        ".frame_items",
        ".object_items",
        "runtime.api",
        "self._api",
    )
    using = {name for name in ours if any(mark in (ROOT / name).read_text(encoding="utf-8") for mark in marks)}
    assert using - ON_ONE_RUNTIME <= set(ROOTS)


@pytest.mark.parametrize("name", ROOTS)
def test_every_name_that_is_misspelt_is_found(name: str) -> None:
    """Each use in the file itself, mutated: a check that overlooks one of them is none."""
    source, overlooked = (ROOT / name).read_text(encoding="utf-8"), []
    for owner, member in sorted(checked(name).members):
        used = rf"(?<=\.){member}\b" if owner != "module" else rf"(?<=\.){member}\b|(?<=import ){member}\b"
        for match in re.finditer(used, source):
            mutant = f"{source[: match.end()]}x{source[match.end() :]}"
            if uses_of(mutant, ROOTS[name]).problems:
                break
        else:
            overlooked.append(f"{owner}.{member}")
    assert overlooked == []


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("from pyservicemaker import Nothing", "1: module.Nothing does not exist"),
        ("def f(batch_meta):\n for x in batch_meta.frame_items: x.objects", "2: FrameMetadata.objects does not exist"),
        ("def f(batch_meta):\n batch_meta.n_frames = 1", "2: BatchMetadata.n_frames cannot be assigned"),
        ("def f(batch_meta):\n r = batch_meta.acquire_object_meta().rect_params\n r.x = 1", "3: Rect.x does not exist"),
        (
            "def f(batch_meta):\n return [x.number for x in batch_meta.frame_items]",
            "2: FrameMetadata.number does not exist",
        ),
    ],
)
def test_the_check_finds_mistakes(source: str, problem: str) -> None:
    assert problem in uses_of(source, {"batch_meta": "BatchMetadata"}).problems


def test_the_check_wants_a_guard_for_extensions() -> None:
    used = "def f(pipeline):\n    pipeline.gst_pipeline\n"
    guarded = "def f(pipeline):\n    if hasattr(pipeline, 'gst_pipeline'):\n        pipeline.gst_pipeline\n"
    assert uses_of(used, {"pipeline": "Pipeline"}).unguarded == ["2: Pipeline.gst_pipeline"]
    assert uses_of(guarded, {"pipeline": "Pipeline"}).unguarded == []


def public(cls: type) -> set[str]:
    """Names that a class adds to what every object (or every ctypes struct, int) has."""
    return {name for base in cls.__mro__ for name in vars(base) if not name.startswith("_")} - _INHERITED


_INHERITED = set(dir(int))


def classes_of(module: object) -> list[type]:
    return [value for value in vars(module).values() if isinstance(value, type) and value.__name__ in CLASSES]


@pytest.mark.parametrize("cls", [*classes_of(_pydeepstream), *classes_of(portable.osd)], ids=lambda cls: cls.__name__)
def test_the_portable_module_has_nothing_more(cls: type) -> None:
    more = public(cls) - set(CLASSES[cls.__name__])
    assert {(cls.__name__, name) for name in more} <= EXTENSIONS


@pytest.mark.skipif(bool(SKIP), reason=SKIP)
def test_the_double_has_nothing_more() -> None:
    from tests.contract import nvds_double

    for cls in [*classes_of(nvds_double), *classes_of(nvds_double.osd)]:
        assert public(cls) <= set(CLASSES[cls.__name__]), cls
