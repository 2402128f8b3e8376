"""What the guides show can be used as it stands there."""

import ast
import re
from pathlib import Path

import pytest

from pipelines.definition import load_definition
from tests.unit.definition_catalog import FakeCatalog

ROOT = Path(__file__).parents[2]
GUIDES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FRAME = {"pipeline": "pipeline: shown", "sources": "sources: [{name: door, uri: door.mp4}]"}
CHAIN = "stages:\n  - infer: {model: other.onnx}\n  - track: {}\n"
SHOP = "def crowded(frame, limit: int = 5): ..."  # stands in docs/metadata.md, too


def blocks(language: str) -> list[object]:
    found = []
    for guide in GUIDES:
        text = guide.read_text(encoding="utf-8")
        for match in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
            line = text.count("\n", 0, match.start()) + 1
            found.append(pytest.param(match[1], id=f"{guide.name}:{line}"))
    return found


def completed(shown: str) -> str:
    """A part of a definition with the keys around it that it needs."""
    if shown.startswith("  - "):
        shown = CHAIN + shown
    keys = set(re.findall(r"^(\w+):", shown, re.MULTILINE))
    return "\n".join(
        [*(text for key, text in FRAME.items() if key not in keys), *([] if "stages" in keys else [CHAIN]), shown]
    )


@pytest.mark.parametrize("shown", blocks("yaml"))
def test_definitions_are_valid(shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    for name in re.findall(r"[\w/]+\.onnx", CHAIN + shown):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    file = tmp_path / "shown.yaml"
    file.write_text(completed(shown), encoding="utf-8")
    variables = dict.fromkeys(re.findall(r"\$\{(\w+)\}", shown), "value")
    assert load_definition(file, environ=variables, catalog=FakeCatalog()).stages


@pytest.mark.parametrize("shown", blocks("python"))
def test_what_examples_import_is_there(shown: str) -> None:
    imports = [node for node in ast.parse(shown).body if isinstance(node, ast.Import | ast.ImportFrom)]
    exec(compile(ast.Module(imports, []), "shown", "exec"), {})
