"""``gstorch new``: what it writes passes its own test, and is found by gstorch and by GStreamer's tools."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clips import make_clip
from tests.gstorch_cli import Result, gstorch

ROOT = Path(__file__).resolve().parents[2]
FRAMES = 8


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """With an element ``brightness``, a model ``spots``, an operator ``crowd`` and a clip."""
    path = tmp_path_factory.mktemp("new")
    make_clip(path / "video.mp4", 160, 120, FRAMES)
    for kind, name in (("element", "brightness"), ("model", "spots"), ("operator", "crowd")):
        result = new(kind, name, cwd=path)
        assert result.code == 0, result.stderr
    return path


def new(*arguments: str, cwd: Path) -> Result:
    return gstorch("new", *arguments, cwd=cwd, env={"PYTHONPATH": str(ROOT)})


def run(folder: Path, *arguments: str, **environment: str) -> Result:
    return gstorch("run", *arguments, "--json", cwd=folder, env={"PYTHONPATH": str(ROOT)} | environment)


@pytest.mark.parametrize("test", ["elements/test_brightness.py", "test_spots.py", "test_crowd.py"])
def test_the_test_passes_as_it_is(folder, test):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


@pytest.mark.parametrize("name", ["py_infer", "gst_fake_sink"])
def test_names_of_types_that_are_there_do_no_harm(tmp_path, name):
    """GObject's types have names of their own, such as PyInfer and GstFakeSink."""
    assert new("element", name, cwd=tmp_path).code == 0
    test_the_test_passes_as_it_is(tmp_path, f"elements/test_{name}.py")


def test_a_class_that_would_hide_an_import(tmp_path):
    result = new("element", "gst", cwd=tmp_path)
    assert (result.code, list(tmp_path.iterdir())) == (1, [])
    assert "its class 'Gst' would hide what the file uses: use for example 'my_gst'" in result.stderr


@pytest.mark.parametrize(("user", "author"), [('a "b" \\', r"a \"b\" \\"), (None, "you")])
def test_authors(monkeypatch, user, author):
    from app import new as commands

    def ask():
        if user is None:
            raise KeyError("getpwuid(): uid not found")
        return user

    monkeypatch.setattr(commands.getpass, "getuser", ask)
    files, _ = commands.render("element", "bright", Path("x"))
    text = files[Path("x/python/bright.py")]
    assert f'"{author}")  # for gst-inspect-1.0' in text
    compile(text, "bright.py", "exec")


# --- elements ---------------------------------------------------------------------------------------------------------


def definition(folder: Path, node: str) -> str:
    (folder / "node.yaml").write_text(f"pipeline: n\nsources: [video.mp4]\nstages:\n  - node: {node}\n")
    return str(folder / "node.yaml")


def test_a_node_finds_the_element_in_the_current_folder(folder):
    result = run(folder, definition(folder, "{factory: brightness, properties: {width: 32}}"))
    assert result.code == 0, result.stderr
    assert result.summary["frames"] == FRAMES


def test_a_node_finds_the_element_through_gst_plugin_path(folder, tmp_path):
    file = definition(folder, "{factory: brightness}")
    lost = run(tmp_path, file)
    assert lost.code == 2
    assert "no element 'brightness'" in lost.stderr
    found = run(tmp_path, file, GST_PLUGIN_PATH=f"/nowhere:{folder}/elements")
    assert found.code == 0, found.stderr
    assert "Traceback" not in found.stderr


def test_its_properties_are_checked(folder):
    result = run(folder, definition(folder, "{factory: brightness, properties: {width: 2}}"))
    assert result.code == 2
    assert "node.yaml:4" in result.stderr
    assert "is too small (at least 8)" in result.stderr
    result = run(folder, definition(folder, "{factory: brightnes}"))
    assert "did you mean 'brightness'?" in result.stderr


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named"),
        ("x = 1", "should end with __gstelementfactory__"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(folder, tmp_path, text, reason):
    file = tmp_path / "elements" / "python" / "broken.py"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    result = run(tmp_path, definition(folder, "{factory: broken}"))
    assert result.code == 2
    assert f"element 'broken' cannot be loaded ({file}: " in result.stderr
    assert reason in result.stderr


@pytest.mark.skipif(Path(sys.prefix) != ROOT / ".venv", reason="env.sh activates .venv, which this test doesn't run in")
def test_gstreamers_tools_find_it(folder):
    line = (
        "gst-launch-1.0 -q videotestsrc num-buffers=3 ! nvvideoconvert ! 'video/x-raw(memory:NVMM)' ! m.sink_0 "
        "nvstreammux name=m batch-size=1 width=64 height=48 ! brightness width=16 ! fakesink"
    )
    setup = f"source '{ROOT}/elements/env.sh' >/dev/null && export GST_PLUGIN_PATH={folder}/elements:$GST_PLUGIN_PATH"
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("GST_", "PYTHONPATH"))}
    clean["GST_REGISTRY_1_0"] = f"{folder}/registry.bin"
    done = subprocess.run(
        ["bash", "-c", f"{setup} && gst-inspect-1.0 brightness && {line}"],
        capture_output=True, text=True, timeout=120, env=clean, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Pixels per row that are looked at" in done.stdout
    assert done.stderr == ""


# --- models -----------------------------------------------------------------------------------------------------------


def test_the_definition_of_a_model_runs(folder):
    result = run(folder, "spots.yaml")
    assert result.code == 0, result.stderr
    assert result.summary["frames"] == FRAMES
    assert (folder / "out" / "spots.mp4").stat().st_size > 1000


def test_the_definition_of_an_operator_runs_with_a_model_put_in(folder):
    result = run(folder, "crowd.yaml", "--set", "stages.infer.model=spots:Spots")
    assert result.code == 0, result.stderr
    assert result.summary["operators"]["operate"] == {"frames": FRAMES, "failed": 0, "dropped": 0}


# --- refused ----------------------------------------------------------------------------------------------------------


def test_nothing_is_ever_replaced(folder):
    files = {file: file.read_bytes() for file in folder.rglob("*.py")}
    for kind, name in (("element", "brightness"), ("model", "spots"), ("operator", "crowd")):
        result = new(kind, name, cwd=folder)
        assert result.code == 1
        assert "exists already; choose another name or --path, or remove it" in result.stderr
    assert {file: file.read_bytes() for file in folder.rglob("*.py")} == files


def test_all_or_nothing(tmp_path):
    (tmp_path / "test_spots.py").write_text("mine")
    result = new("model", "spots", cwd=tmp_path)
    assert (result.code, result.stderr) == (
        1, "error: test_spots.py: exists already; choose another name or --path, or remove it\n"
    )  # fmt: skip
    assert [file.name for file in tmp_path.iterdir()] == ["test_spots.py"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Foo-Bar", "for example 'foo_bar'"),
        ("9x", "for example 'my_9x'"),
        ("../x", "for example 'x'"),
        ("numpy", "Python has a module 'numpy' already: use another name, for example 'my_numpy'"),
        ("class", "is a word of Python: use for example 'my_class'"),
        ("identity", "GStreamer has an element 'identity' already"),
        ("pyinfer", "GStreamer has an element 'pyinfer' already"),
    ],
)
def test_a_name_that_will_not_do(tmp_path, name, told):
    result = new("element", name, cwd=tmp_path)
    assert result.code == 1
    assert told in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    result = new("element", "brightness", "--path", "file/x", cwd=tmp_path)
    assert result.code == 1
    assert "cannot write" in result.stderr
    assert "choose another --path" in result.stderr
