"""GStreamer elements written in Python, and the models inside them."""

import contextlib
import ctypes

# GStreamer loads libunwind, whose unwinder would take the place of libgcc's in C++ libraries that are loaded later.
# Exceptions inside ONNX Runtime and OpenCV must not depend on who was imported first, so libgcc's comes first.
with contextlib.suppress(OSError):
    ctypes.CDLL("libgcc_s.so.1", mode=ctypes.RTLD_GLOBAL)
