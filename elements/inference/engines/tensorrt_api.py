"""The parts of TensorRT's Python API (10 and 11) that loading and building share."""

from __future__ import annotations

import logging
from typing import Any

from elements.inference.engines.base import import_torch
from elements.inference.errors import ModelError

log = logging.getLogger("gstorch.tensorrt")

OLDEST = 10


def import_tensorrt() -> Any:
    """The tensorrt module.

    Raises:
        ModelError: if it is missing or too old.
    """
    try:
        import tensorrt
    except ImportError as error:
        raise ModelError(
            f"TensorRT cannot be imported ({error}): pip install tensorrt, or use the ONNX or TorchScript export"
        ) from error
    if int(tensorrt.__version__.split(".")[0]) < OLDEST:
        raise ModelError(f"TensorRT {tensorrt.__version__} is installed, {OLDEST} or newer is needed")
    return tensorrt


def check_on_gpu(device: Any, wanted: str, instead: str) -> None:
    """Say that an engine cannot run elsewhere.

    Args:
        device: the torch device.
        wanted: the option ``device``.
        instead: what to use in place of the engine.

    Raises:
        ModelError: if ``device`` is no GPU.
    """
    if device.type != "cuda":
        why = "device: cpu was asked for: set device to cuda" if wanted == "cpu" else "there is none here"
        raise ModelError(f"a TensorRT engine runs on an NVIDIA GPU only, and {why}, or use {instead}")


def make_logger(trt: Any) -> Any:
    """A TensorRT logger that writes to ours; ``errors`` holds what went wrong since it was made."""
    levels = {
        trt.ILogger.INTERNAL_ERROR: logging.ERROR,
        trt.ILogger.ERROR: logging.ERROR,
        trt.ILogger.WARNING: logging.WARNING,
    }

    class Logger(trt.ILogger):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            trt.ILogger.__init__(self)  # the binding insists on this form
            self.errors: list[str] = []

        def log(self, severity: Any, message: str) -> None:
            level = levels.get(severity, logging.DEBUG)
            if level == logging.ERROR:
                self.errors.append(message)  # told in the exception that follows
                level = logging.DEBUG
            log.log(level, "%s", message)

    return Logger()


def this_machine(trt: Any, device: Any) -> dict[str, str]:
    """The part of a fingerprint that the machine decides."""
    torch = import_torch()
    major, minor = torch.cuda.get_device_capability(device)
    return {
        "tensorrt": trt.__version__,
        "gpu": torch.cuda.get_device_name(device),
        "compute_capability": f"{major}.{minor}",
    }
