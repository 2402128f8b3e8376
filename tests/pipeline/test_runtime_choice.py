"""Which pyservicemaker is used, and what is said of one that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clips import make_clip
from tests.gstorch_cli import Result, gstorch

ROOT = Path(__file__).resolve().parents[2]
BROKEN = "raise ImportError('libnvds_meta.so: cannot open shared object file')"
LACKS = "import no_such_module_at_all"


@pytest.fixture(scope="module")
def definition(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("choice")
    make_clip(folder / "red.mp4", 160, 120, 4)
    file = folder / "d.yaml"
    infer = "{model: 'tests.own_models:Good'}"
    file.write_text(f"pipeline: t\nsources: [red.mp4]\nstages: [{{infer: {infer}}}]\n")
    return file


def with_module(folder: Path, text: str, *arguments: str | Path) -> Result:
    """gstorch where Python finds a pyservicemaker of this text."""
    (folder / "pyservicemaker.py").write_text(text)
    return gstorch(*arguments, env={"PYTHONPATH": f"{folder}:{ROOT}"})


@pytest.mark.parametrize("command", ["run", "explain"])
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            BROKEN,
            "cannot be imported (ImportError: libnvds_meta.so: cannot open shared object file): repair the",
        ),
        (
            LACKS,
            "cannot be imported (ModuleNotFoundError: No module named 'no_such_module_at_all'): repair the",
        ),
        ("", "is not NVIDIA's, it has no Pipeline: take it from Python's path, or set runtime.prefer to 'portable'"),
    ],
)
def test_what_cannot_be_used_is_told(tmp_path: Path, definition: Path, command: str, text: str, problem: str) -> None:
    result = with_module(tmp_path, text, command, definition)
    assert result.code == 1
    assert problem in result.stderr
    assert "Traceback" not in result.stderr


def test_the_portable_one_can_be_chosen(tmp_path: Path, definition: Path) -> None:
    result = with_module(tmp_path, BROKEN, "run", definition, "--set", "runtime.prefer=portable")
    assert result.code == 0, result.stderr


def test_doctor_says_so(tmp_path: Path) -> None:
    result = with_module(tmp_path, BROKEN, "doctor")
    assert result.code == 1
    assert "bad   runtime" in result.stdout
    assert "cannot be imported (ImportError: libnvds_meta.so" in result.stdout
    assert "make setup" not in result.stdout.partition("bad   runtime")[2].partition("\n")[0]
