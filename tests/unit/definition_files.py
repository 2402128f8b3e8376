"""Definitions of a few lines, for tests."""

from pathlib import Path

from pipelines.definition import Definition, InferStage, load_definition


def load(folder: Path, text: str, *overrides: str, **environ: str) -> Definition:
    """Load ``text``, with ``sources`` and ``pipeline`` added where it has none."""
    for name in ("model.onnx", "labels.txt", "tracker.yml"):
        (folder / name).touch()
    if "pipeline:" not in text:
        text = f"pipeline: entrance\n{text}"
    if "sources:" not in text:
        text = f"sources: [door.mp4]\n{text}"
    file = folder / "pipeline.yaml"
    file.write_text(text, encoding="utf-8")
    return load_definition(file, overrides, environ)


def infer(folder: Path, options: str) -> InferStage:
    stage = load(folder, f"stages:\n  - infer: {{model: model.onnx, {options}}}").stages[0]
    assert isinstance(stage, InferStage)
    return stage
