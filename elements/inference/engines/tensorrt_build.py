"""ONNX to a TensorRT engine, once per fingerprint."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elements.inference.config import ModelConfig
from elements.inference.engines.base import check_file, torch_device
from elements.inference.engines.dims import dims_of
from elements.inference.engines.fingerprint import Fingerprint, SideCar, differences, onnx_hash, read_side_car
from elements.inference.engines.fingerprint import write_side_car as _write_side_car
from elements.inference.engines.tensorrt_api import import_tensorrt, make_logger, this_machine
from elements.inference.errors import ModelError
from elements.inference.letterbox import Size

WORKSPACE = 4 << 30  # bytes that TensorRT may take to try its kernels


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """How an engine is built.

    Attributes:
        onnx: the ONNX file.
        output: the engine file; default: beside the ONNX file.
        precision: ``fp32`` or ``fp16``; ``auto``: fp16.
        batch: (fewest, best, most) frames per run, used where the ONNX file leaves the batch open.
        size: (width, height) of the input, needed where the ONNX file leaves it open.
        device: the GPU to build for: ``cuda`` or ``cuda:N``.
        force: build even if the engine that is there fits.
    """

    onnx: Path
    output: Path | None = None
    precision: str = "auto"
    batch: tuple[int, int, int] = (1, 8, 16)
    size: Size | None = None
    device: str = "cuda"
    force: bool = False


@dataclass(frozen=True, slots=True)
class Built:
    """An engine that is there now.

    Attributes:
        path: the engine file.
        fresh: whether it was built just now.
        changes: why an engine that was there before did not fit.
    """

    path: Path
    fresh: bool
    changes: tuple[str, ...] = ()


def build(options: BuildOptions) -> Built:
    """Build the engine, unless the one that is there has the same fingerprint.

    Raises:
        ModelError: if TensorRT, a GPU or the ONNX file cannot be used.
    """
    check_file(str(options.onnx), "ONNX file")
    output = options.output or options.onnx.with_suffix(".engine")
    _check_writable(output)
    trt = import_tensorrt()
    device = torch_device(ModelConfig(str(options.onnx), device=options.device))
    if device.type != "cuda":
        raise ModelError("an engine is built on the GPU that it is for: set --device to cuda")
    half, metadata = _look_into(options.onnx)
    logger = make_logger(trt)
    builder = trt.Builder(logger)
    typed = half or int(trt.__version__.split(".")[0]) >= 11
    network = builder.create_network(_strongly_typed(trt) if typed else 0)
    parser = trt.OnnxParser(network, logger)
    if not parser.parse_from_file(str(options.onnx)):
        problems = "; ".join(str(parser.get_error(index)) for index in range(parser.num_errors))
        raise ModelError(f"TensorRT cannot read '{options.onnx}': {problems}")
    image = _image_input(network)
    size, batch = _shapes(options, dims_of(image.shape))
    precision = _precision(trt, options, typed, half)
    onnx = onnx_hash(options.onnx)
    if onnx is None:
        raise ModelError("a file with its weights is missing: copy it beside the ONNX file")
    fingerprint = Fingerprint(onnx=onnx, precision=precision, batch=batch, size=size, **this_machine(trt, device))
    changes = _changes(output, fingerprint, options.force)
    if changes == ():
        return Built(output, fresh=False)
    config = builder.create_builder_config()
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, WORKSPACE)
    if precision == "fp16" and not typed:
        config.set_flag(trt.BuilderFlag.FP16)
    if options.precision == "fp32" and hasattr(trt.BuilderFlag, "TF32"):  # else products are of 10 bit
        config.clear_flag(trt.BuilderFlag.TF32)
    profile = builder.create_optimization_profile()
    profile.set_shape(image.name, *((frames, 3, size[1], size[0]) for frames in batch))
    config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        raise ModelError(f"TensorRT cannot build '{options.onnx}': {'; '.join(logger.errors) or 'it does not say why'}")
    _write(output, plan, SideCar(fingerprint, _name_from(output, options.onnx), metadata))
    return Built(output, fresh=True, changes=changes or ())


def _check_writable(output: Path) -> None:
    """Building takes minutes, so what would fail after it is refused before."""
    if output.is_dir():
        raise ModelError(f"'{output}' is a folder: write the engine's file name to --output")
    if not output.parent.is_dir():
        raise ModelError(f"there is no folder '{output.parent}' for the engine: make it, or choose another --output")
    if not os.access(output.parent, os.W_OK):
        raise ModelError(f"'{output.parent}' cannot be written to: choose another place with --output")


def _changes(output: Path, fingerprint: Fingerprint, force: bool) -> tuple[str, ...] | None:
    """How the engine that is there differs from the one to build: not at all, or in what; ``None`` if there is none.

    Raises:
        ModelError: if it is of another make, which would be lost.
    """
    if force or not output.is_file():
        return None
    try:
        there = read_side_car(output)
    except ModelError:
        return ("what it was built for cannot be read",)
    if there is None:
        raise ModelError(
            f"'{output}' is there and was not made by gstorch: choose another --output, or replace it with --force"
        )
    return tuple(differences(there.fingerprint, fingerprint))


def _strongly_typed(trt: Any) -> int:
    """The flag for networks whose types are those of the file; TensorRT 11 knows no other kind."""
    flag = getattr(trt.NetworkDefinitionCreationFlag, "STRONGLY_TYPED", None)
    return 0 if flag is None else 1 << int(flag)


def _precision(trt: Any, options: BuildOptions, typed: bool, half: bool) -> str:
    """The precision that the engine will have.

    Raises:
        ModelError: if it is not the one that is asked for.
    """
    if not typed:
        return "fp32" if options.precision == "fp32" else "fp16"
    own = "fp16" if half else "fp32"
    if options.precision not in ("auto", own):
        raise ModelError(
            f"--precision {options.precision} was asked for, but '{options.onnx}' holds {own} and TensorRT "
            f"{trt.__version__} builds it so: export it in {options.precision}, or leave --precision out"
        )
    return own


def _look_into(path: Path) -> tuple[bool, dict[str, str]]:
    """Whether the ONNX file's image input is float16, and its metadata.

    Raises:
        ModelError: if it is damaged.
    """
    import onnx

    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception as error:  # protobuf's
        raise ModelError("it is not a complete ONNX file: export or copy it again") from error
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in weights]
    half = any(value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT16 for value in inputs)
    return half, {entry.key: entry.value for entry in model.metadata_props}


def _image_input(network: Any) -> Any:
    if network.num_inputs != 1:
        raise ModelError(f"it has {network.num_inputs} inputs: a detector with one image input is needed")
    image = network.get_input(0)
    shape = dims_of(image.shape)
    if len(shape) != 4 or shape[1] != 3:
        raise ModelError(f"its input is {list(shape)}: (batch, 3, height, width) is needed")
    return image


def _shapes(options: BuildOptions, shape: tuple[int, ...]) -> tuple[Size, tuple[int, int, int]]:
    """Size and batch, as the file fixes them or else as the options say."""
    batch, _, height, width = shape
    size = options.size
    if -1 not in (height, width):
        if size is not None and size != (width, height):
            raise ModelError(f"--size {size[0]}x{size[1]} is set, but its input is fixed to {width}x{height}")
        size = (width, height)
    if size is None:
        raise ModelError("its input size is dynamic: set --size, for example --size 640")
    if not 1 <= options.batch[0] <= options.batch[1] <= options.batch[2]:
        raise ModelError(f"--batch: {options.batch} must not fall: fewest, best, most")
    return size, options.batch if batch == -1 else (batch, batch, batch)


def _name_from(output: Path, onnx: Path) -> str:
    """Where the ONNX file lies, as seen from the engine."""
    return os.path.relpath(onnx.resolve(), output.resolve().parent)


def _write(output: Path, plan: Any, side_car: SideCar) -> None:
    """Both files or none that fits: the side-car goes last, the engine under another name until it is whole."""
    try:
        whole = output.with_name(f".{output.name}.{os.getpid()}")
        whole.write_bytes(bytes(plan))
        whole.replace(output)
        _write_side_car(output, side_car)
    except OSError as error:
        raise ModelError(f"'{output}' cannot be written: {error.strerror}") from error
