"""``gstorch models compare``."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from app.common import fail, find_own_code, label_names
from pipelines.outcome import EXIT_FAILED

if TYPE_CHECKING:
    from elements.inference.compare import Agreement
    from elements.inference.frame import ArrayFrame
    from elements.inference.single import SingleModel

PICTURES = (".jpg", ".jpeg", ".png", ".bmp", ".webp")


def compare(
    first: Annotated[str, typer.Argument(metavar="MODEL", help="The model to compare with, such as the fp32 one.")],
    second: Annotated[str, typer.Argument(metavar="OTHER", help="The other one, such as its fp16 or INT8 build.")],
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="A video, a picture, or a folder of pictures.")],
    frames: Annotated[int, typer.Option(min=1, help="Most frames that are looked at.")] = 100,
    confidence: Annotated[float, typer.Option(min=0, max=1, help="Objects below this are left out.")] = 0.25,
    labels: Annotated[
        str | None, typer.Option(help="File with one class name per line, or the names with commas.")
    ] = None,
    task: Annotated[str, typer.Option(help="What both do, if they do not tell.")] = "auto",
    layout: Annotated[str, typer.Option(help="Layout of the outputs of both, if they do not tell.")] = "auto",
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    trust: Annotated[bool, typer.Option("--trust", help="Load pickled files, which can run any code.")] = False,
    least: Annotated[
        float, typer.Option("--min-agreement", min=0, max=1, help="Below this share of objects in common: exit code 1.")
    ] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Run two models on the same pictures and tell how far they agree.

    For an INT8 or fp16 build beside the model it was made from: what the smaller numbers cost, on your own video.
    """
    from elements.inference.compare import Agreement
    from elements.inference.config import ModelConfig
    from elements.inference.errors import ModelError
    from elements.inference.single import SingleModel

    find_own_code()
    result = Agreement()
    options: dict[str, Any] = {
        "confidence": confidence, "labels": label_names(labels), "task": task, "layout": layout, "device": device,
        "trust": trust,
    }  # fmt: skip
    try:
        with contextlib.ExitStack() as stack:
            one, other = (stack.enter_context(SingleModel(ModelConfig(path, **options))) for path in (first, second))
            _check_names(first, one, second, other)
            for frame in islice(_frames(source), frames):
                where = f"picture {frame.frame_number} of {source}"
                result.add([one.find(frame, where)], [other.find(frame, where)])
    except ModelError as error:
        fail(str(error))
        raise typer.Exit(EXIT_FAILED) from error
    if not result.frames:
        fail(f"{source}: no picture in it")
        raise typer.Exit(EXIT_FAILED)
    numbers = _numbers(result)
    if as_json:
        typer.echo(json.dumps(numbers))
    else:
        Console().print(_table(numbers))
    if result.agreement < least:
        fail(f"the models have {result.agreement:.1%} of their objects in common, less than {least:.1%}")
        raise typer.Exit(EXIT_FAILED)


def _check_names(first: str, one: SingleModel, second: str, other: SingleModel) -> None:
    """Raise `ModelError` if the classes of the two differ, which makes their numbers incomparable."""
    from elements.inference.errors import ModelError

    if one.names != other.names:
        raise ModelError(
            f"the classes differ: '{first}' has {len(one.names)} ({', '.join(one.names[:3])} …), '{second}' "
            f"{len(other.names)} ({', '.join(other.names[:3])} …): --labels gives names to a model that carries none"
        )


def _frames(source: Path) -> Iterator[ArrayFrame]:
    """The pictures of ``source``, upright, in order.

    Raises:
        ModelError: if there is no such file, or it is no picture and no video.
    """
    from elements.inference.errors import ModelError

    if not source.exists():
        raise ModelError(f"{source}: there is no such file")
    if source.is_dir() or source.suffix.lower() in PICTURES:
        files = sorted(source.iterdir()) if source.is_dir() else [source]
        yield from (
            _frame(i, _picture(file)) for i, file in enumerate(f for f in files if f.suffix.lower() in PICTURES)
        )
        return
    yield from (_frame(number, picture) for number, picture in enumerate(_decoded(source)))


def _picture(file: Path) -> Any:
    import cv2

    from elements.inference.errors import ModelError

    picture = cv2.imread(str(file))
    if picture is None:
        raise ModelError(f"{file}: is no picture that can be read")
    return picture


def _decoded(source: Path) -> Iterator[Any]:
    import cv2

    from elements.inference.errors import ModelError

    video = cv2.VideoCapture(str(source))
    try:
        if not video.isOpened():
            raise ModelError(f"{source}: is neither a video nor a picture that can be read")
        while (read := video.read())[0]:
            yield read[1]
    finally:
        video.release()


def _frame(number: int, bgr: Any) -> ArrayFrame:
    from elements.inference.frame import ArrayFrame

    return ArrayFrame(bgr[..., ::-1].copy(), frame_number=number)


def _numbers(result: Agreement) -> dict[str, float]:
    return {
        "frames": result.frames,
        "objects_first": result.first,
        "objects_second": result.second,
        "in_common": result.matched,
        "agreement": round(result.agreement, 4),
        "mean_iou": round(result.mean_iou, 4),
        "shift_px_median": round(result.shift(50), 3),
        "shift_px_95": round(result.shift(95), 3),
        "score_shift_median": round(result.score_shift(50), 4),
        "score_shift_95": round(result.score_shift(95), 4),
    }


def _table(numbers: dict[str, float]) -> Table:
    table = Table(show_header=False, box=None)
    explained = {
        "agreement": "share of objects that both have",
        "shift_px_95": "95 % of the boxes differ by less, source pixels",
        "score_shift_95": "95 % of the confidences differ by less",
    }
    for key, value in numbers.items():
        table.add_row(key.replace("_", " "), f"{value:g}", explained.get(key, ""))
    return table
