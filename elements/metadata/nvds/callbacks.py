"""Copy and release functions for user metadata whose payload is one C string (NUL-terminated, from ``g_strdup``).

DeepStream calls them on any thread, the release function also with the batch's lock held (when an object is removed)
and after Python has shut down. A Python function would need the interpreter lock there: it can deadlock with a thread
that keeps that and waits for the batch (pyservicemaker does), and it crashes at exit. Both functions get the
NvDsUserMeta and only have to hand its payload to GLib, which three machine instructions do:

    copy:    return g_strdup(user_meta->user_meta_data)
    release: g_free(user_meta->user_meta_data)

The instructions lie in memory of their own that is never unmapped, so they outlive the interpreter.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import platform
import struct
from ctypes import CDLL, c_int, c_long, c_size_t, c_void_p
from dataclasses import dataclass

from elements.metadata.nvds.layout import UserMeta

_PAYLOAD = UserMeta.user_meta_data.offset


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Addresses of ``copy`` (NvDsMetaCopyFunc) and ``release`` (NvDsMetaReleaseFunc)."""

    copy: int
    release: int


@functools.cache
def string_callbacks() -> Callbacks:
    """The two functions, made once per process.

    Raises:
        OSError: if the machine is neither x86-64 nor aarch64, or the system forbids executable memory.
    """
    glib = CDLL("libglib-2.0.so.0")
    codes = [_call_with_payload(_address(glib.g_strdup)), _call_with_payload(_address(glib.g_free))]
    first = _executable(b"".join(codes))
    return Callbacks(first, first + len(codes[0]))


def _call_with_payload(target: int) -> bytes:
    """A function that replaces its first argument by the payload that this points to and goes on to ``target``."""
    machine = platform.machine()
    if machine == "x86_64":
        return (
            bytes.fromhex("f30f1efa")  # endbr64
            + bytes((0x48, 0x8B, 0x7F, _PAYLOAD))  # mov rdi, [rdi + payload]
            + bytes.fromhex("48b8")  # mov rax, target
            + struct.pack("<Q", target)
            + bytes.fromhex("ffe0")  # jmp rax
        )
    if machine == "aarch64":
        load = 0xF9400000 | (_PAYLOAD // 8) << 10  # ldr x0, [x0, #payload]
        # bti c; load; ldr x16, target; br x16
        return struct.pack("<4IQ", 0xD503245F, load, 0x58000050, 0xD61F0200, target)
    raise OSError(f"there is no code for {machine}")


def _executable(code: bytes) -> int:
    """The address of ``code`` in memory that can be run, is not writable and stays for ever."""
    libc = CDLL(None, use_errno=True)
    libc.mmap.argtypes, libc.mmap.restype = [c_void_p, c_size_t, c_int, c_int, c_int, c_long], c_void_p
    libc.mprotect.argtypes = [c_void_p, c_size_t, c_int]
    anonymous = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    # not Python's mmap object, which would unmap at exit
    page = libc.mmap(None, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE, anonymous, -1, 0)
    if page == c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), f"mmap: {os.strerror(ctypes.get_errno())}")
    ctypes.memmove(page, code, len(code))
    if libc.mprotect(page, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError(ctypes.get_errno(), f"executable memory: {os.strerror(ctypes.get_errno())}")
    return int(page)


def _address(function: object) -> int:
    return ctypes.cast(function, c_void_p).value or 0  # type: ignore[arg-type]
