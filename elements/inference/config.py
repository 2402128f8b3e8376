"""How a model is configured: the same keys in the YAML stage, in the element's config file and in code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any, Literal, get_args, get_type_hints

from elements.inference.errors import ModelError, unknown_key
from elements.inference.letterbox import LetterboxMode, Size
from elements.inference.names import Labels
from elements.inference.preprocess import ColorOrder, ValueRange
from elements.inference.tasks import Task

Coordinates = Literal["auto", "pixel", "normalized"]
_Task = Literal["auto", Task]
_Letterbox = Literal["auto", LetterboxMode]
_Color = Literal["auto", ColorOrder]
_Scale = Literal["auto", ValueRange]
_Engine = Literal["auto", "onnx", "openvino", "torch", "tensorrt", "ultralytics"]
Precision = Literal["auto", "fp32", "fp16"]


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """A model's options. ``auto`` and ``None`` mean: as the model or its layout says.

    Attributes:
        path: model file, or ``package.module:Class`` for a model of your own.
        confidence: lowest score that counts (``>=``), 0 to 1.
        iou: overlap above which the lesser of two boxes of one class goes, 0 to 1.
        labels: label file or list of names, used if the model carries no names.
        task: what the model does (see `elements.inference.tasks`); ``auto``: as its metadata or outputs tell.
        layout: name of a decoder (see `elements.inference.decoders`), or ``auto``.
        letterbox: how the picture is laid into the network's input.
        color: channel order of the input.
        scale: value range of the input (see `Preprocess`).
        pad: grey of the padding, 0 to 255.
        coordinates: unit of the boxes that the model gives.
        input_size: (width, height) for a model whose input size is not fixed.
        rectangular: lay frames into the smallest rectangle of the network's stride instead of the whole input, which is
            faster; ``None``: as the models' authors do, that is where the input size is free and frames are centred.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        batch_size: most frames per run where the model allows any number; 0: the engine's choice.
        classes: names or numbers of the classes to report; empty: all.
        engine: what runs the model; ``auto``: by file type (see `elements.inference.engines.base`).
        precision: ``auto``, ``fp32`` or ``fp16``; ``auto``: as the file was made, and fp16 for torch on a GPU.
        weights: file with the weights (a state dict) for a ``torch.nn.Module`` class of your own.
        trust: load a pickled file, which can run any code when it is loaded.
        compile: run the network as code that torch.compile makes for ``batch_size`` pictures of ``input_size``.
        params: parameters of a class of your own, or of ``postprocess``, by name.
        postprocess: ``package.module:function`` that reads the outputs in place of a layout's decoder.

    Raises:
        ModelError: if a value is out of its range.
    """

    path: str
    confidence: float = 0.25
    iou: float = 0.45
    labels: Labels = None
    task: _Task = "auto"
    layout: str = "auto"
    letterbox: _Letterbox = "auto"
    color: _Color = "auto"
    scale: _Scale = "auto"
    pad: int | None = None
    coordinates: Coordinates = "auto"
    input_size: Size | None = None
    rectangular: bool | None = None
    device: str = "auto"
    batch_size: int = 0
    classes: tuple[str | int, ...] = ()
    engine: _Engine = "auto"
    precision: Precision = "auto"
    weights: str | None = None
    trust: bool = False
    compile: bool = False
    params: Mapping[str, Any] = field(default_factory=dict)
    postprocess: str | None = None

    def __post_init__(self) -> None:
        _check_types(self)
        for key in ("confidence", "iou"):
            if not 0 <= getattr(self, key) <= 1:
                raise ModelError(f"{key}: {getattr(self, key)} is not between 0 and 1")
        for key in ("task", "letterbox", "color", "scale", "coordinates", "engine", "precision"):
            allowed = choices(key)
            if getattr(self, key) not in allowed:
                raise ModelError(f"{key}: '{getattr(self, key)}' is not one of {', '.join(allowed)}")
        for key in ("trust", "compile", "rectangular"):
            value = getattr(self, key)
            if not isinstance(value, bool) and (key, value) != ("rectangular", None):
                raise ModelError(f"{key}: '{value}' is neither true nor false")
        if self.compile and self.postprocess is not None:
            raise ModelError("compile: true does not go with postprocess: leave one of them out")
        if self.compile and self.rectangular:
            raise ModelError("compile: true is done for one input size and not with rectangular: leave one of them out")
        if not isinstance(self.params, Mapping) or not all(isinstance(key, str) for key in self.params):
            raise ModelError(f"params: '{self.params}' is no mapping of names to values")
        if self.pad is not None and not 0 <= self.pad <= 255:
            raise ModelError(f"pad: {self.pad} is not between 0 and 255")
        if self.batch_size < 0:
            raise ModelError(f"batch_size: {self.batch_size} is below 0")
        if self.input_size is not None and min(self.input_size) < 32:
            raise ModelError(f"input_size: {self.input_size[0]}x{self.input_size[1]} is below 32x32")

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any]) -> ModelConfig:
        """A config from plain values, as YAML gives them.

        Dashes in keys count as underscores, ``model`` is ``path``, and ``auto`` or null leaves the default.

        Raises:
            ModelError: for an unknown key, a missing path or a value out of range.
        """
        values: dict[str, Any] = {}
        known = [f.name for f in fields(cls)]
        for key, value in options.items():
            name = key.replace("-", "_")
            name = "path" if name == "model" else name
            if name not in known:
                raise unknown_key(key, known)
            if value is not None and value != "auto":
                values[name] = value
        if not values.get("path"):
            raise ModelError("no model is given: set model-path (or 'model' in the config file) to a model file")
        if "input_size" in values:
            values["input_size"] = parse_size(values["input_size"])
        if isinstance(values.get("rectangular"), str):  # as a property of an element
            values["rectangular"] = {"true": True, "false": False}.get(values["rectangular"], values["rectangular"])
        if isinstance(values.get("classes"), str | Sequence):
            values["classes"] = tuple(parse_list(values["classes"]))
        return cls(**values)


_TEXTS = ("path", "layout", "device", "weights", "postprocess")
_NUMBERS = {"confidence": Real, "iou": Real, "pad": Integral, "batch_size": Integral}


def _check_types(config: ModelConfig) -> None:
    """Refuse what YAML may hold and an option may not: numbers for texts, lists for numbers."""
    for key in _TEXTS:
        value = getattr(config, key)
        if not isinstance(value, str | None):
            raise ModelError(f"{key}: {value!r} is no text: put it in quotes")
    for key, kind in _NUMBERS.items():
        value = getattr(config, key)
        if isinstance(value, bool) or not isinstance(value, kind | None):
            raise ModelError(f"{key}: {value!r} is no {'whole ' if kind is Integral else ''}number")
    for key, kinds in {"labels": str, "classes": str | Integral}.items():
        value = getattr(config, key)
        items = [] if value is None or isinstance(value, str) else value
        if not isinstance(items, Sequence) or not all(isinstance(item, kinds) for item in items):
            raise ModelError(f"{key}: {value!r} is no list of names")


_HINTS = get_type_hints(ModelConfig)


def choices(key: str) -> tuple[str, ...]:
    """The values that an option may have which has a fixed list of them, ``auto`` first."""
    allowed: tuple[str, ...] = get_args(_HINTS[key])
    return allowed


def parse_size(value: str | int | Sequence[int]) -> Size:
    """(width, height) from ``640``, ``"640x384"`` or ``[640, 384]``.

    Raises:
        ModelError: for anything else.
    """
    try:
        parts = value.lower().split("x") if isinstance(value, str) else value
        numbers = [int(part) for part in parts] if not isinstance(parts, int) else [parts]
        width, height = numbers * 2 if len(numbers) == 1 else numbers
    except (TypeError, ValueError) as error:
        raise ModelError(f"input_size: '{value}' is not a size: write 640 or 640x384 (width x height)") from error
    return width, height


def parse_list(value: str | Sequence[str | int]) -> list[str | int]:
    """A list, or the entries of ``"person, car"``."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return list(value)
