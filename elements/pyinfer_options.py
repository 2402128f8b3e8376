"""pyinfer's properties, and the options that they and its configuration file give together."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from elements.base import Property
from elements.inference.cascade import OperateOn
from elements.inference.config import ModelConfig, choices, parse_list
from elements.inference.decoders import LAYOUTS
from elements.inference.engines.base import is_class_path
from elements.inference.errors import ModelError
from elements.inference.source_options import SourceOptions, source_options_of
from elements.inference.swap.options import SwapOptions

LIVE = "; may change while running"

PROPERTIES = (
    Property("model-path", str, "", f"Model file, or package.module:Class for a class of your own{LIVE}"),
    Property("model-engine", str, "", "The same as model-path"),
    Property("config-file-path", str, "", "YAML file with the options of the infer stage; properties that are set win"),
    Property("confidence-threshold", float, 0.25, f"Lowest confidence that counts{LIVE}", 0, 1),
    Property("iou-threshold", float, 0.45, f"Overlap above which the lesser box of a class goes{LIVE}", 0, 1),
    Property("batch-size", "uint", 0, "Most frames per run of a model that takes any number on a GPU; 0: all"),
    Property("interval", "uint", 0, f"Frames skipped between two inferences of a source{LIVE}"),
    Property(
        "engine", str, "auto", "What runs the model: auto (by file type), onnx, openvino, torch, tensorrt, ultralytics"
    ),
    Property("device", str, "auto", "auto, cpu, cuda or cuda:N; only auto falls back to the CPU"),
    Property("precision", str, "auto", "auto, fp32 or fp16; auto: as the file was made, fp16 for torch on a GPU"),
    Property("weights", str, "", "State dict for a torch.nn.Module class of your own"),
    Property("trust", bool, False, "Load pickled models and exported programs, which can run any code"),
    Property(
        "compile", bool, False, "torch.compile the network, for batch-size pictures of input-size, when it is loaded"
    ),
    Property("unique-id", "uint", 1, "unique_component_id of the objects", 0, 2**31 - 1),
    Property("labels", str, "", "File with one class name per line, or the names with commas (one name: 'person,')"),
    Property(
        "task", str, "auto", f"What the model does: {', '.join(choices('task'))} (as the file or its outputs tell)"
    ),
    Property("layout", str, "auto", f"Output layout: auto, {', '.join(LAYOUTS)}"),
    Property("letterbox", str, "auto", f"How a frame is laid into the input: {', '.join(choices('letterbox'))}"),
    Property("color", str, "auto", f"Channel order of the input: {', '.join(choices('color'))}"),
    Property("scale", str, "auto", f"Value range of the input: {', '.join(choices('scale'))}"),
    Property("pad-value", int, -1, "Grey of the padding, 0 to 255; -1: by layout", -1, 255),
    Property("coordinates", str, "auto", "Unit of the model's boxes: auto, pixel, normalized"),
    Property("input-size", str, "", "Input of a model of free size: 640 or 640x384 (width x height)"),
    Property(
        "rectangular", str, "auto", "Cut the padding to the network's stride: true, false, auto (if the size is free)"
    ),
    Property("classes", str, "", "Names or numbers of the classes to report, with commas between them; empty: all"),
    Property("params", str, "", 'Parameters of a class of your own, or of postprocess, as JSON: {"threshold": 0.5}'),
    Property("postprocess", str, "", "package.module:function that reads the model's outputs in place of a layout"),
    Property(
        "operate-on",
        str,
        "",
        'Objects to work on in place of frames, as JSON: {"id": 1, "classes": ["car"], "min_size": 32, '
        '"max_objects": 40, "refresh": 5, "rate": 100}; id is the unique-id of who finds them',
    ),
    Property("class-offset", "uint", 0, "Added to class ids, to tell models of one unique-id apart", 0, 2**31 - 1),
    Property("source-names", str, "", "Names of the sources by id, as a JSON list; a model of your own sees them"),
    Property(
        "source-options",
        str,
        "",
        'What sources have otherwise, as JSON by source id: {"0": {"confidence": 0.6, "classes": ["car"], '
        f'"interval": 1, "region": [0, 0.5, 1, 1], "model": "other.onnx"}}}}{LIVE}',
    ),
    Property(
        "swap-options",
        str,
        "",
        'How a new model proves itself, as JSON: {"shadow": 8, "min_iou": 0.5, "max_count_change": 0.5, "keep": 10, '
        f'"no_detections": 300, "max_latency": 0.1}}; shadow in batches, times in seconds{LIVE}',
    ),
    Property("reload", str, "off", f"off, or watch: load a model again when its file changes{LIVE}"),
    Property("on-error", str, "stop", "When the model fails on a frame: stop, or skip the frame and count it"),
    Property(
        "frames-inferred", "uint64", 0, "Frames (objects, with operate-on) that the model has seen", writable=False
    ),
    Property("frames-failed", "uint64", 0, "Frames on which the model failed (on-error=skip)", writable=False),
    Property("nan-count", "uint64", 0, "Rows of model output left out as not finite numbers", writable=False),
    Property("model-version", str, "", "Version of the model in force: file name and SHA-256", writable=False),
    Property(
        "swap-state", str, "", "Of the newest swap: loading, shadow, active, rejected, rolled-back", writable=False
    ),
    Property("swap-error", str, "", "Why the newest swap failed; empty after one that did not", writable=False),
)

# property -> option, where the names differ by more than dashes
_OPTION_OF = {
    "model-path": "model",
    "model-engine": "model",
    "confidence-threshold": "confidence",
    "iou-threshold": "iou",
    "pad-value": "pad",
}
_ELEMENT_OPTIONS = (
    "interval", "unique_id", "on_error", "operate_on", "class_offset", "source_names", "source_options", "swap_options",
    "reload",
)  # fmt: skip
_JSON = ("params", "operate-on", "source-names", "source-options", "swap-options")  # properties


@dataclass(frozen=True, slots=True)
class Options:
    """What the element runs with.

    Attributes:
        model: the model and its options.
        interval: frames skipped between two inferences of a source.
        unique_id: component id of the objects.
        on_error: ``stop`` or ``skip``.
        operate_on: which objects to work on; ``None``: on frames.
        class_offset: added to class ids.
        source_names: names of the sources by id.
        source_options: what sources have otherwise, by id.
        swap_options: how a new model proves itself.
        reload: ``off`` or ``watch``.
    """

    model: ModelConfig
    interval: int = 0
    unique_id: int = 1
    on_error: str = "stop"
    operate_on: OperateOn | None = None
    class_offset: int = 0
    source_names: tuple[str, ...] = ()
    source_options: Mapping[int, SourceOptions] = field(default_factory=dict)
    swap_options: SwapOptions = field(default_factory=SwapOptions)
    reload: str = "off"


def resolve_options(values: Mapping[str, Any], user_set: set[str]) -> Options:
    """Options from the configuration file, if any, and over it the properties that the user set.

    Raises:
        ModelError: if something is missing, unknown or out of range.
    """
    path = values["config-file-path"]
    options = read_options(path) if path else {}
    writable = [p.name for p in PROPERTIES if p.writable and p.name in user_set and p.name != "config-file-path"]
    if {"model-path", "model-engine"} <= set(writable) and values["model-path"] != values["model-engine"]:
        raise ModelError("model-path and model-engine name two models: set one of them")
    for name in writable:
        options[_OPTION_OF.get(name, name.replace("-", "_"))] = _plain(name, values[name])
    element = {key: options.pop(key) for key in _ELEMENT_OPTIONS if key in options}
    if element.get("on_error", "stop") not in ("stop", "skip"):
        raise ModelError(f"on-error: '{element['on_error']}' is neither stop nor skip")
    for key in ("interval", "unique_id", "class_offset"):
        number = element.get(key, 0)
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < 2**31:
            raise ModelError(f"{key}: '{number}' is not a whole number from 0 to {2**31 - 1}")
    if "operate_on" in element:
        element["operate_on"] = OperateOn.from_mapping(_of_type(element["operate_on"], dict, "operate-on"))
    if "source_names" in element:
        names = _of_type(element["source_names"], list, "source-names")
        if not all(isinstance(name, str) for name in names):
            raise ModelError(f"source-names: '{names}' is no list of texts")
        element["source_names"] = tuple(names)
    if "source_options" in element:
        element["source_options"] = source_options_of(element["source_options"])
    if "swap_options" in element:
        element["swap_options"] = SwapOptions.from_mapping(_of_type(element["swap_options"], dict, "swap-options"))
    if element.get("reload", "off") not in ("off", "watch"):
        raise ModelError(f"reload: '{element['reload']}' is neither off nor watch")
    return Options(ModelConfig.from_mapping(options), **element)


def read_options(path: str) -> dict[str, Any]:
    """Options of a configuration file, by option name. Paths in it are relative to it.

    Raises:
        ModelError: if the file cannot be read or has an unknown key.
    """
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"config-file-path '{path}': {error.strerror}") from None
    except (UnicodeDecodeError, ValueError, yaml.YAMLError) as error:
        text = "; ".join(line.strip() for line in str(error).splitlines())
        raise ModelError(f"config-file-path '{path}' is no YAML: {text}") from None
    if not isinstance(content, dict):
        raise ModelError(f"config-file-path '{path}': expected lines like 'model: people.onnx'")
    known = ["model", *(f.name for f in fields(ModelConfig) if f.name != "path"), *_ELEMENT_OPTIONS]
    options = {}
    for key, value in content.items():
        option = str(key).replace("-", "_")
        if option not in known:
            near = difflib.get_close_matches(option, known, n=1)
            raise ModelError(f"{path}: unknown key '{key}'" + (f": did you mean '{near[0]}'?" if near else ""))
        options[option] = value
    folder = Path(path).parent
    if isinstance(options.get("model"), str) and not is_class_path(options["model"]):
        options["model"] = str(folder / options["model"])
    for key in ("labels", "weights"):
        if isinstance(options.get(key), str):
            options[key] = str(folder / options[key])
    return options


def _of_type(value: Any, kind: type, key: str) -> Any:
    if not isinstance(value, kind):
        raise ModelError(f"{key}: '{value}' is no {'list' if kind is list else 'mapping'}")
    return value


def _plain(name: str, value: Any) -> Any:
    """A property's value as the option wants it.

    Raises:
        ModelError: if it should be JSON and is not.
    """
    if name in _JSON and value:
        try:
            return json.loads(value)
        except ValueError as error:
            raise ModelError(f"{name}: it is no JSON ({error}): {value}") from None
    if name == "pad-value" and value < 0:
        return None
    if name == "labels" and value and "," in value and not os.path.exists(value):  # noqa: PTH110, Path raises if too long
        return parse_list(value)
    return None if value == "" else value
