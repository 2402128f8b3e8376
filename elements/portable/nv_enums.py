"""Property types that several of NVIDIA's elements have in common: same numbers and nicks, own GType names."""

from __future__ import annotations

from elements.base import Property, enum_type

MEMORY_TYPE = enum_type(
    "GstorchNvBufMemoryType",
    {0: "nvbuf-mem-default", 1: "nvbuf-mem-cuda-pinned", 2: "nvbuf-mem-cuda-device", 3: "nvbuf-mem-cuda-unified"},
)
COMPUTE_HW = enum_type("GstorchNvComputeHw", {0: "Default", 1: "GPU", 2: "VIC"})
COPY_HW = enum_type("GstorchNvCopyHw", {1: "GPU"})
INTERPOLATION = enum_type(
    "GstorchNvInterpolation",
    {0: "Nearest", 1: "Bilinear", 2: "Algo-1", 3: "Algo-2", 4: "Algo-3", 5: "Algo-4", 6: "Default"},
)


def gpu_properties(memory_type: int = 0, interpolation: int = 1) -> tuple[Property, ...]:
    """The properties that choose GPU, memory and scaler; they have no effect here (scaling is bilinear)."""
    return (
        Property("gpu-id", "uint", 0, "GPU to use", effect=False),
        Property("nvbuf-memory-type", MEMORY_TYPE, memory_type, "Memory of output buffers", effect=False),
        Property("compute-hw", COMPUTE_HW, 0, "Hardware for scaling", effect=False),
        Property("interpolation-method", INTERPOLATION, interpolation, "Method of scaling", effect=False),
    )
