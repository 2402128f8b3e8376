"""``gstorch models``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.common import fail
from pipelines.outcome import EXIT_FAILED

models = typer.Typer(name="models", no_args_is_help=True)


@models.callback()
def _group() -> None:
    """Look at model files and classes, compare them, and build engines."""


@models.command("build")
def build(
    onnx: Annotated[Path, typer.Argument(metavar="ONNX", help="The model as an ONNX file.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Engine file; default: beside the ONNX file.")
    ] = None,
    precision: Annotated[str, typer.Option(help="auto (fp16 where TensorRT may choose), fp16 or fp32.")] = "auto",
    batch: Annotated[
        str, typer.Option(metavar="MIN:BEST:MAX", help="Frames per run, where the file leaves the batch open.")
    ] = "1:8:16",
    size: Annotated[
        str | None, typer.Option(help="Input size, where the file leaves it open: 640 or 640x384 (width x height).")
    ] = None,
    device: Annotated[str, typer.Option(help="The GPU to build for: cuda or cuda:N.")] = "cuda",
    force: Annotated[bool, typer.Option("--force", help="Build even if the engine that is there fits.")] = False,
) -> None:
    """Build a TensorRT engine from an ONNX file, for this machine's GPU and TensorRT.

    What it was built from and for is kept beside it (ENGINE.json). It is built again only if any of that has changed;
    a run never builds, it says what does not fit.
    """
    from elements.inference.config import parse_size
    from elements.inference.engines.tensorrt_build import BuildOptions
    from elements.inference.engines.tensorrt_build import build as build_engine
    from elements.inference.errors import ModelError

    try:
        if precision not in ("auto", "fp16", "fp32"):
            raise ModelError(f"--precision: '{precision}' is not one of auto, fp16, fp32")
        wanted = parse_size(size) if size else None
        built = build_engine(BuildOptions(onnx, output, precision, _parse_batch(batch), wanted, device, force))
    except ModelError as error:
        fail(f"{onnx}: {error}")
        raise typer.Exit(EXIT_FAILED) from error
    for change in built.changes:
        typer.echo(f"changed: {change}")
    typer.echo(f"built {built.path}" if built.fresh else f"{built.path} is up to date")


def _parse_batch(text: str) -> tuple[int, int, int]:
    """(fewest, best, most) from ``8``, ``1:16`` or ``1:8:16``.

    Raises:
        ModelError: for anything else.
    """
    from elements.inference.errors import ModelError

    try:
        numbers = [int(part) for part in text.split(":")]
        fewest, *middle, most = numbers * 2 if len(numbers) == 1 else numbers
        (best,) = middle or [most]
    except ValueError as error:
        raise ModelError(f"--batch: '{text}' is not a batch: write 8, 1:16 or 1:8:16 (fewest, best, most)") from error
    return fewest, best, most
