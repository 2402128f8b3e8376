"""From a file or a class to a torch module on its device.

What may run code when it is loaded is refused unless it is trusted explicitly: a pickled module can run any.
TorchScript holds its own restricted code; a state dict and an exported program hold tensors only, and their pickles are
checked for that.
"""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elements.inference.config import ModelConfig
from elements.inference.engines.base import check_file, import_torch, is_class_path
from elements.inference.errors import ModelError, brief
from elements.inference.params import call_with_params, import_object

METADATA_FILES = ("config.txt", "metadata.json")  # JSON beside the network; ultralytics writes config.txt
_TRUST = "A pickle can run any code when it is loaded: if you know where it comes from, set trust: true"


@dataclass(frozen=True, slots=True)
class LoadedModule:
    """A module in evaluation mode, on its device.

    Attributes:
        module: takes a (B, 3, H, W) tensor.
        shape: its input as declared, (B, 3, H, W) with ``None`` where it may change; ``None`` if nothing tells.
        max_batch: the most frames it takes, where that is told.
        dtype: the torch type of its input if it is fixed, else ``None``.
        metadata: what the file says of itself.
    """

    module: Any
    shape: tuple[int | None, ...] | None = None
    max_batch: int | None = None
    dtype: Any = None
    metadata: Mapping[str, str] = field(default_factory=dict)


def load_module(config: ModelConfig, device: Any) -> LoadedModule:
    """The module of ``config``, by what the file holds.

    Raises:
        ModelError: if it cannot be loaded, or is a pickle that is not trusted.
    """
    if is_class_path(config.path):
        return LoadedModule(_own_class(config, device))
    if config.weights:
        raise ModelError("weights are for a class of your own (model: package.module:Class): leave them out")
    if Path(config.path).suffix.lower() == ".pt2":
        return _exported(config, device)
    names = _members(config.path)
    if any(name.endswith("/constants.pkl") for name in names):
        return _script(config.path, device)
    return LoadedModule(_pickled(config, device))


def _members(path: str) -> list[str]:
    """Names inside the archive; none if it is no archive (torch before 1.6)."""
    if not zipfile.is_zipfile(path):
        return []
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def _own_class(config: ModelConfig, device: Any) -> Any:
    """An instance of the user's class, with the weights."""
    torch = import_torch()
    params = config.params if config.postprocess is None else {}  # which are then the function's
    module = call_with_params(import_object(config.path), params, {"config": config})()
    if config.weights:
        check_file(config.weights, "weights")
        try:
            state = torch.load(config.weights, map_location="cpu", weights_only=True)
        except Exception as error:  # pickle, zip and torch errors share no base class but this
            raise ModelError(
                f"weights '{config.weights}': {brief(error)}. Only a state dict is loaded: "
                "save it with torch.save(model.state_dict(), path)"
            ) from error
        try:
            module.load_state_dict(state)
        except (RuntimeError, TypeError, AttributeError) as error:
            text = " ".join(str(error).split())[:500]
            raise ModelError(f"weights '{config.weights}' do not fit the class: {text}") from error
    return module.eval().to(device)


def _script(path: str, device: Any) -> LoadedModule:
    torch = import_torch()
    extra = dict.fromkeys(METADATA_FILES, "")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # TorchScript is deprecated, the files are still about
            module = torch.jit.load(path, map_location=device, _extra_files=extra)
    except Exception as error:
        raise ModelError(f"torch cannot load it as TorchScript: {brief(error)}") from error
    return LoadedModule(module.eval(), metadata=_metadata(extra))


def _exported(config: ModelConfig, device: Any) -> LoadedModule:
    torch = import_torch()
    if not config.trust:
        _check_exported(config.path)
    extra = dict.fromkeys(METADATA_FILES, "")
    try:
        program = torch.export.load(config.path, extra_files=extra)
        if device.type != "cpu":
            from torch.export.passes import move_to_device_pass

            program = move_to_device_pass(program, str(device))
    except Exception as error:
        raise ModelError(f"torch {torch.__version__} cannot load the exported program: {brief(error)}") from error
    inputs = [n for n in program.graph.nodes if n.op == "placeholder" and n.name in program.graph_signature.user_inputs]
    if len(inputs) != 1:
        raise ModelError(f"it has {len(inputs)} inputs: a detector with one image input is needed")
    value = inputs[0].meta["val"]
    shape = tuple(size if isinstance(size, int) else None for size in value.shape)
    if len(shape) != 4 or shape[1] != 3:
        raise ModelError(f"its input is {list(shape)}: (batch, 3, height, width) is needed")
    max_batch = None
    if shape[0] is None:
        upper = program.range_constraints[value.shape[0].node.expr].upper
        max_batch = int(upper) if upper.is_finite and int(upper) < 1 << 20 else None
    return LoadedModule(program.module(), shape, max_batch, value.dtype, _metadata(extra))


def _check_exported(path: str) -> None:
    """Refuse an exported program whose loading would unpickle more than tensors."""
    torch = import_torch()
    if not zipfile.is_zipfile(path):
        raise ModelError("it is not a complete exported program: save it again with torch.export.save")
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        configs = [json.loads(archive.read(name)) for name in names if name.endswith("_config.json")]
        entries = [entry for content in configs for entry in content.get("config", {}).values()]
        pickled = {entry["path_name"] for entry in entries if entry.get("use_pickle", True)}
        if not configs or any("custom_obj" in name for name in names):
            raise ModelError(f"it holds pickled objects, or is of a version before torch 2.9. {_TRUST}")
        for name in names:
            if name.endswith(".pt") or name.rpartition("/")[2] in pickled:
                try:
                    torch.load(io.BytesIO(archive.read(name)), map_location="cpu", weights_only=True)
                except Exception as error:
                    raise ModelError(f"'{name}' in it holds more than tensors. {_TRUST}") from error


def _pickled(config: ModelConfig, device: Any) -> Any:
    """A module from a pickle, if it is trusted. Everything else is refused with what to do."""
    torch = import_torch()
    if not config.trust:
        try:
            torch.load(config.path, map_location="cpu", weights_only=True)
        except Exception as error:
            raise ModelError(
                f"it is a pickled module, not TorchScript. {_TRUST}; or save it with torch.jit.save or "
                "torch.export.save, or name its class (model: package.module:Class) with its state dict as 'weights'"
                f"{_ultralytics_hint(config.path)}"
            ) from error
        raise ModelError(_STATE_DICT)
    try:
        content = torch.load(config.path, map_location="cpu", weights_only=False)
    except Exception as error:
        raise ModelError(f"torch cannot load it: {brief(error)}{_ultralytics_hint(config.path)}") from error
    module = content.get("model") if isinstance(content, dict) else content
    if not isinstance(module, torch.nn.Module):
        raise ModelError(_STATE_DICT)
    if type(module).__module__.startswith("ultralytics"):
        raise ModelError("it is a checkpoint of ultralytics: set engine: ultralytics")
    return module.float().eval().to(device)


_STATE_DICT = (
    "it holds weights without the network: name the network's class (model: package.module:Class) and give this file "
    "as 'weights'"
)


def _ultralytics_hint(path: str) -> str:
    """Whether the pickle names ultralytics' classes, told without unpickling."""
    with Path(path).open("rb") as file:
        head = file.read(1 << 20)
    return ". It is a checkpoint of ultralytics: set engine: ultralytics" if b"ultralytics" in head else ""


def _metadata(extra: Mapping[str, str | bytes]) -> dict[str, str]:
    """Entries of the first extra file that is there, values as text."""
    for content in extra.values():
        if content:
            try:
                return {str(key): str(value) for key, value in json.loads(content).items()}
            except (ValueError, AttributeError) as error:
                raise ModelError(f"its metadata is not a JSON object: {brief(error)}") from error
    return {}
