"""GStreamer elements written in Python, and the models inside them."""

import contextlib
import ctypes
import os

# ONNX Runtime (since 1.32, also on Linux) would tell its maker about sessions and keep an id of the machine for it
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

# GStreamer loads libunwind, whose unwinder would take the place of libgcc's in C++ libraries that are loaded later.
# Exceptions inside ONNX Runtime and OpenCV must not depend on who was imported first, so libgcc's comes first.
with contextlib.suppress(OSError):
    ctypes.CDLL("libgcc_s.so.1", mode=ctypes.RTLD_GLOBAL)
