"""What a TensorRT engine was made from and for. It is kept in a JSON file beside the engine: ``people.engine.json``."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from elements.inference.errors import ModelError
from elements.inference.letterbox import Size

VERSION = 1


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """An engine fits only where all of this is the same.

    Attributes:
        onnx: SHA-256 of the ONNX file, and of the files with its weights where they lie apart (`onnx_hash`).
        tensorrt: TensorRT's version.
        gpu: the GPU's name.
        compute_capability: the GPU's, as ``9.0``.
        precision: ``fp32`` or ``fp16``.
        batch: (fewest, best, most) frames.
        size: (width, height) of the input.
    """

    onnx: str
    tensorrt: str
    gpu: str
    compute_capability: str
    precision: str
    batch: tuple[int, int, int]
    size: Size


@dataclass(frozen=True, slots=True)
class SideCar:
    """The file beside an engine: its fingerprint, the ONNX file's name and what that says of itself."""

    fingerprint: Fingerprint
    source: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)


_WORDS = {
    "onnx": "another ONNX file",
    "tensorrt": "TensorRT",
    "gpu": "GPU",
    "compute_capability": "compute capability",
    "precision": "precision",
    "batch": "batch (fewest, best, most)",
    "size": "input size",
}


def side_car_path(engine: str | Path) -> Path:
    """``people.engine`` -> ``people.engine.json``."""
    return Path(f"{engine}.json")


def read_side_car(engine: str | Path) -> SideCar | None:
    """What is known of an engine, ``None`` if it has no side-car (made by trtexec, say).

    Raises:
        ModelError: if the file is there and cannot be read.
    """
    path = side_car_path(engine)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        values: dict[str, Any] = content["fingerprint"]
        values["batch"], values["size"] = tuple(values["batch"]), tuple(values["size"])
        metadata = {str(key): str(value) for key, value in content["metadata"].items()}
        return SideCar(Fingerprint(**values), str(content["source"]), metadata)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelError(f"'{path}' beside it cannot be read ({error}): build the engine again") from error


def write_side_car(engine: str | Path, side_car: SideCar) -> None:
    """Write the file beside ``engine``."""
    content = {"version": VERSION, **asdict(side_car)}
    side_car_path(engine).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def differences(built: Fingerprint, wanted: Fingerprint | Mapping[str, Any]) -> list[str]:
    """What differs, in words; ``wanted`` may tell a part only. Empty if nothing does.

    >>> differences(fingerprint, {"gpu": "NVIDIA T4"})
    ['GPU: built for NVIDIA H200, here is NVIDIA T4']
    """
    here = asdict(wanted) if isinstance(wanted, Fingerprint) else wanted
    there = asdict(built)
    return [
        _WORDS[key] if key == "onnx" else f"{_WORDS[key]}: built for {there[key]}, here is {value}"
        for key, value in here.items()
        if there[key] != value
    ]


def onnx_hash(path: Path) -> str | None:
    """SHA-256 of an ONNX file, together with the files that hold its weights if it leaves them out of itself.

    ``None`` if one of them is not there, so that nothing can be told.
    """
    if not os.path.isfile(path):  # noqa: PTH113, Path raises where the name is too long
        return None
    files = [path, *(path.parent / name for name in _weight_files(path))]
    try:
        hashes = [sha256(file) for file in files]
    except FileNotFoundError:
        return None
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


def _weight_files(path: Path) -> list[str]:
    """The files that an ONNX file names for its weights; none if it is damaged, which is another matter."""
    import onnx

    try:
        weights = onnx.load(str(path), load_external_data=False).graph.initializer
    except Exception:  # protobuf's
        return []
    apart = [weight for weight in weights if weight.data_location == onnx.TensorProto.EXTERNAL]
    return sorted({entry.value for weight in apart for entry in weight.external_data if entry.key == "location"})


def sha256(path: str | Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
