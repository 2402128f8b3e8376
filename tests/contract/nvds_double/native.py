"""The real libraries of NVIDIA's decoder wheel, which load without a GPU. The package itself must not be imported: that
would change GStreamer's plugin path."""

from __future__ import annotations

import ctypes
import importlib.util
import platform
import sys
from ctypes import c_char_p, c_int, c_size_t, c_uint, c_void_p
from pathlib import Path
from typing import Any

WHEEL = "nvidia-deepstream-videodecode-cu13"


class Crash(AssertionError):  # noqa: N818
    """What the native code does not survive."""


def _folder() -> Path | None:
    try:
        spec = importlib.util.find_spec("nvidia.deepstream_videodecode")
    except ModuleNotFoundError:
        return None
    return Path(spec.submodule_search_locations[0]) / "_libs" if spec and spec.submodule_search_locations else None


def _missing() -> str:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return "the DeepStream libraries of the wheel are for x86-64 Linux"
    return "" if _folder() else f"DeepStream's libraries are not here: pip install --no-deps {WHEEL}"


SKIP = _missing()
"""Why the tests cannot run; empty if they can."""


class _Library:
    """Functions by their C names; prototypes are declared once."""

    def __init__(self) -> None:
        folder = _folder()
        # brings in libnvds_meta.so by its bare name, as pyservicemaker does
        gst_meta = ctypes.CDLL(str(folder / "libnvdsgst_meta.so"), mode=ctypes.RTLD_GLOBAL)
        nvds = ctypes.CDLL("libnvds_meta.so")
        glib = ctypes.CDLL("libglib-2.0.so.0")
        libc = ctypes.CDLL(None)
        p = c_void_p
        self._declare(nvds, p, [c_uint], "nvds_create_batch_meta")
        self._declare(nvds, c_int, [p], "nvds_destroy_batch_meta")
        for kind in ("frame", "obj", "classifier", "label_info", "display", "user"):
            self._declare(nvds, p, [p], f"nvds_acquire_{kind}_meta_from_pool")
        self._declare(nvds, None, [p, p, p], "nvds_add_obj_meta_to_frame")
        for name in ("frame_meta_to_batch", "display_meta_to_frame", "user_meta_to_obj", "user_meta_to_frame"):
            self._declare(nvds, None, [p, p], f"nvds_add_{name}")
        self._declare(nvds, p, [p, p], "nvds_batch_meta_copy_func")
        self._declare(nvds, None, [p, p], "nvds_batch_meta_release_func")
        self._declare(gst_meta, p, [p, p, p, p, p], "gst_buffer_add_nvds_meta")
        self._declare(gst_meta, p, [p], "gst_buffer_get_nvds_batch_meta")
        self._declare(glib, p, [c_char_p], "g_strdup")
        self._declare(libc, p, [c_size_t], "malloc")
        self._declare(libc, None, [p], "free")

    def _declare(self, library: ctypes.CDLL, result: Any, arguments: list[Any], name: str) -> None:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
        setattr(self, name, function)


lib: Any = None if SKIP else _Library()


def address_of(function: Any) -> int:
    return ctypes.cast(function, c_void_p).value


def u32(address: int) -> ctypes.c_uint32:
    return ctypes.c_uint32.from_address(address)


def i32(address: int) -> ctypes.c_int32:
    return ctypes.c_int32.from_address(address)


def u64(address: int) -> ctypes.c_uint64:
    return ctypes.c_uint64.from_address(address)


def f32(address: int) -> ctypes.c_float:
    return ctypes.c_float.from_address(address)


def text_at(address: int) -> str:
    return ctypes.string_at(address).decode()
