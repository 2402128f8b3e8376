"""What is wrong with a video, in words: shared by the source element and by media discovery."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from elements.base import GLib, Gst

DAMAGED = "cannot be read: it has no usable index or no frames, so it is cut off or damaged"
IS_GIF = (
    "is a GIF, in which GStreamer finds neither times nor an end; make a video of it: "
    "ffmpeg -i IN.gif -vf 'pad=ceil(iw/2)*2:ceil(ih/2)*2' -pix_fmt yuv420p OUT.mp4"
)
_GIF_SIGNATURES = (b"GIF87a", b"GIF89a")
_UNSPECIFIC = "GStreamer encountered a general stream error."  # what demuxers without a text of their own say


def split_credentials(uri: str) -> tuple[str, str, str]:
    """``(uri without user info, user, password)``; user and password are percent-decoded, "" where absent."""
    parts = urlsplit(uri)
    info, at, host = parts.netloc.rpartition("@")
    if not at:
        return uri, "", ""
    user, _, password = info.partition(":")
    return urlunsplit(parts._replace(netloc=host)), unquote(user), unquote(password)


def location(uri: str) -> str:
    """How messages name a source: the path of a file, else the URI without user and password."""
    if uri.startswith("file:"):
        try:
            path, host = GLib.filename_from_uri(uri)
            return uri if host else str(path)
        except GLib.Error:
            return uri
    return split_credentials(uri)[0]


def uri_problem(uri: str | None, repeated: bool) -> str | None:
    """Why a URI cannot be played, or not be ``repeated``, as far as is known before anything is started."""
    if not uri:
        return "the property 'uri' is not set"
    scheme = Gst.Uri.get_scheme(Gst.Uri.from_string(uri)) if Gst.uri_is_valid(uri) else None
    if scheme is None:
        return "not a URI; for a file write file:///path with %, # and ? percent-encoded"
    if scheme == "file":
        return file_problem(uri)
    if repeated:
        return "file-loop works for files only"
    if not Gst.uri_protocol_is_supported(Gst.URIType.SRC, scheme):
        return f"no installed GStreamer element reads '{scheme}://'"
    return None


def file_problem(uri: str) -> str | None:
    """Why a ``file:`` URI cannot be played, as far as the directory entry and the first bytes tell; None if it can.

    A GIF is refused: libav's demuxer (GStreamer 1.22) gives all of its frames the time 0, and reads on for ever at its
    end, on one whole core.
    """
    try:
        name, host = GLib.filename_from_uri(uri)
    except GLib.Error as error:
        return f"not a file URI ({error.message}); write file:///path with %, # and ? percent-encoded"
    if host and host != "localhost":
        return f"the URI names a host, '{host}'; a file URI has three slashes: file:///path"
    path = Path(name)
    if path.is_symlink() and not path.exists():
        return "is a link to a file that is not there"
    if not path.exists():
        return "no such file"
    if path.is_dir():
        return "is a folder, not a video file"
    if not os.access(path, os.R_OK):
        return "cannot be read: permission denied"
    if path.is_file() and path.stat().st_size == 0:
        return "is empty (0 bytes)"
    if path.is_file():
        with path.open("rb") as file:
            if file.read(6) in _GIF_SIGNATURES:
                return IS_GIF
    return None


def no_video(streams: list[str]) -> str:
    """The text for a source without a video stream; ``streams`` describes those that it has."""
    found = ", ".join(streams) if streams else "nothing that can be played"
    return f"has no video stream; found: {found}"


def decoder_missing(descriptions: list[str]) -> str:
    """The text for a codec that no installed plugin decodes."""
    wanted = " and ".join(descriptions) or "unknown"
    return (
        f"no decoder for it is installed (missing: {wanted}); Debian and Ubuntu have decoders in "
        "gstreamer1.0-libav, gstreamer1.0-plugins-good, -bad and -ugly"
    )


def explain(error: GLib.Error, missing: list[str]) -> str:
    """A GStreamer error as a text that completes "<location>: …".

    ``missing`` holds the descriptions from missing-plugin messages that came before.
    """
    if missing or _is(error, Gst.StreamError, "CODEC_NOT_FOUND") or _is(error, Gst.CoreError, "MISSING_PLUGIN"):
        return decoder_missing(missing)
    if _is(error, Gst.StreamError, "TYPE_NOT_FOUND", "WRONG_TYPE"):
        return "is not a video file (its content is of no known type)"
    if _is(error, Gst.StreamError, "DEMUX", "FORMAT") or error.message == _UNSPECIFIC:
        return DAMAGED
    if _is(error, Gst.StreamError, "DECODE"):
        return f"cannot be decoded: the video stream is damaged ({_sentence(error)})"
    if _is(error, Gst.ResourceError, "NOT_AUTHORIZED"):
        return "user or password is wrong or missing"
    if _is(error, Gst.ResourceError, "NOT_FOUND"):
        return f"not found ({_sentence(error)})"
    if _is(error, Gst.ResourceError, "OPEN_READ", "OPEN_READ_WRITE"):
        return f"cannot be opened ({_sentence(error)})"
    return _sentence(error)


def _is(error: GLib.Error, domain: Any, *codes: str) -> bool:
    return any(error.matches(domain.quark(), int(getattr(domain, code))) for code in codes)


def _sentence(error: GLib.Error) -> str:
    return str(error.message).strip().rstrip(".")
