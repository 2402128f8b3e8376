"""From a file or a class to a torch module on its device.

What may do more than compute is refused unless it is trusted explicitly. A pickled module can run any code when it is
loaded. So can an exported program: beside pickles it holds expressions and guards as Python source, which torch runs.
TorchScript is a language of its own that reaches nothing but tensors, and files through a few operators. A state dict
is loaded as tensors only.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elements.inference.config import ModelConfig
from elements.inference.engines.base import check_file, import_torch, is_class_path
from elements.inference.errors import ModelError, brief
from elements.inference.params import call_with_params, import_object

METADATA_FILES = ("config.txt", "metadata.json")  # JSON beside the network; ultralytics writes config.txt
_WITH_ALLOW_TF32 = 13  # arguments of aten::_convolution since torch 1.7; the last one
_TRUST = "can run any code when it is loaded: if you know where it comes from, set trust: true"
_FILE_OPERATORS = re.compile(rb"\b(save|from_file|load_tensor|read_file|write_file)\b")  # torch's and torchvision's
_GETATTR = re.compile(rb"""\bgetattr\((?:(?!getattr)[^"'])*"[^"\\]*"\)""")  # as torch writes it: of a plain name
_PICKLE_STARTS = b"\x80"  # protocol 2 and later


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
        return _script(config, device)
    return LoadedModule(_pickled(config, device))


def _members(path: str) -> list[str]:
    """Names inside the archive; none if it is a plain pickle (torch before 1.6).

    Raises:
        ModelError: if it is neither.
    """
    if zipfile.is_zipfile(path):
        with _archive(path) as archive:
            return archive.namelist()
    with Path(path).open("rb") as file:
        if file.read(1) != _PICKLE_STARTS:
            raise ModelError("it is no file of torch, or cut: save or copy it again")
    return []


@contextlib.contextmanager
def _archive(path: str) -> Iterator[zipfile.ZipFile]:
    """The archive ``path``.

    Raises:
        ModelError: if what is done with it shows that it is damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ModelError(f"its archive is damaged ({error}): save or copy it again") from error


def _own_class(config: ModelConfig, device: Any) -> Any:
    """An instance of the user's class, with the weights."""
    params = config.params if config.postprocess is None else {}  # which are then the function's
    module = call_with_params(import_object(config.path), params, {"config": config})()
    if config.weights:
        check_file(config.weights, "weights")
        try:
            state = _tensors(config.weights)
        except Exception as error:  # torch's own words advise to load it without a check
            raise ModelError(
                f"weights '{config.weights}' are no state dict, or damaged: save it with "
                "torch.save(model.state_dict(), path)"
            ) from error
        try:
            module.load_state_dict(state)
        except (RuntimeError, TypeError, AttributeError) as error:
            text = " ".join(str(error).split())[:500]
            raise ModelError(f"weights '{config.weights}' do not fit the class: {text}") from error
    return module.eval().to(device)


def _script(config: ModelConfig, device: Any) -> LoadedModule:
    torch = import_torch()
    if not config.trust:
        _check_script(config.path)
    extra = dict.fromkeys(METADATA_FILES, "")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # TorchScript is deprecated, the files are still about
            module = torch.jit.load(config.path, map_location=device, _extra_files=extra)
        _compute_as_asked(module)
    except Exception as error:
        raise ModelError(
            f"torch {torch.__version__} cannot load it as TorchScript: {brief(error)}. "
            "Save it again with torch.jit.save"
        ) from error
    return LoadedModule(module.eval(), metadata=_metadata(extra))


def _compute_as_asked(module: Any) -> None:
    """Let no convolution of TorchScript round its float32 input to TF32, which tracing writes into each of them.

    That is 10 bit in place of 23, and moves boxes. It is an argument, so that torch's own switch does not reach it.
    """
    graph = module.graph
    import_torch()._C._jit_pass_inline(graph)
    for node in graph.findAllNodes("aten::_convolution"):
        inputs = list(node.inputs())
        if len(inputs) == _WITH_ALLOW_TF32:
            with graph.insert_point_guard(node):
                node.replaceInput(len(inputs) - 1, graph.insertConstant(False))


def _check_script(path: str) -> None:
    """Refuse TorchScript that reads or writes files.

    It must not even name what does: a function may get another name, and a call may have comments and breaks in it.
    """
    with _archive(path) as archive:
        for member in archive.infolist():  # not by name: of two with the same name torch may read the other one
            code = archive.read(member) if member.filename.endswith(".py") else b""
            if found := _FILE_OPERATORS.search(code):
                what = f"names '{found[1].decode()}', which can read or write files here"
            elif _makes_names(code):
                what = "makes up names, which may hide that it reads or writes files"
            else:
                continue
            raise ModelError(
                f"its code in '{member.filename}' {what}: if you know where it comes from, set trust: true"
            )


def _makes_names(code: bytes) -> bool:
    """Whether ``getattr`` gets anything else than a plain name."""
    while (rest := _GETATTR.sub(b"_", code)) != code:  # from the innermost
        code = rest
    return re.search(rb"\bgetattr\b", code) is not None


def _exported(config: ModelConfig, device: Any) -> LoadedModule:
    torch = import_torch()
    if not zipfile.is_zipfile(config.path):
        raise ModelError("it is not a complete exported program: save it again with torch.export.save")
    if not config.trust:
        raise ModelError(f"it is an exported program, which {_TRUST}; or save it with torch.jit.save")
    extra = dict.fromkeys(METADATA_FILES, "")
    with _overheard(logging.getLogger("torch.export")) as causes:
        try:
            program = torch.export.load(config.path, extra_files=extra)
            if device.type != "cpu":
                from torch.export.passes import move_to_device_pass

                program = move_to_device_pass(program, str(device))
            module = program.module()
        except Exception as error:
            why = brief(causes[0] if causes else error)
            raise ModelError(
                f"torch {torch.__version__} cannot load the exported program: {why}. Export it again with this torch"
            ) from error
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
    return LoadedModule(module, shape, max_batch, value.dtype, _metadata(extra))


@contextlib.contextmanager
def _overheard(logger: logging.Logger) -> Iterator[list[BaseException]]:
    """Exceptions that a library logs, to raise one that does not say what happened. They are not printed."""
    heard: list[BaseException] = []

    def listen(record: logging.LogRecord) -> bool:
        if record.exc_info and record.exc_info[1]:
            heard.append(record.exc_info[1])
        return not record.exc_info

    logger.addFilter(listen)
    try:
        yield heard
    finally:
        logger.removeFilter(listen)


def _pickled(config: ModelConfig, device: Any) -> Any:
    """A module from a pickle, if it is trusted. Everything else is refused with what to do."""
    torch = import_torch()
    if not config.trust:
        try:
            _tensors(config.path)
        except Exception as error:
            raise ModelError(
                f"it is a pickled module, not TorchScript, which {_TRUST}; or save it with torch.jit.save, or name its "
                "class (model: package.module:Class) with its state dict as 'weights'"
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


def _tensors(path: str) -> Any:
    """What a pickle holds, if that is nothing but tensors and plain values.

    Raises:
        Exception: pickle's, zipfile's or torch's, which share no base class but this.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of protocols and kinds of archives; the result says all
        return import_torch().load(path, map_location="cpu", weights_only=True)


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
