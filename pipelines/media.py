"""What a video file is before it is played: size, rate, length, codec."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import gi

from elements.base import post_error
from elements.media_problems import decoder_missing, explain, file_problem, location, no_video
from elements.start_watch import StartWatch

gi.require_version("Gst", "1.0")
gi.require_version("GstPbutils", "1.0")
from gi.repository import GLib, Gst, GstPbutils  # noqa: E402

_SHORTEST = 1.0  # seconds; the discoverer takes no shorter limit
_SILENT = "nothing came out of it"
_DEMUX = (Gst.StreamError, int(Gst.StreamError.DEMUX))
_TURNED = ("rotate-90", "rotate-270", "flip-rotate-90", "flip-rotate-270")


class MediaError(Exception):
    """A source that cannot be played. The text begins with the path as the user wrote it."""


@dataclass(frozen=True, slots=True)
class MediaInfo:
    """The first video stream of a source.

    ``width`` and ``height`` are those of the upright picture. ``fps`` is None where the file does not say it,
    ``duration_s`` where it has no end, and ``frames``, an estimate from both, where one of them is missing.
    """

    width: int
    height: int
    fps: Fraction | None
    duration_s: float | None
    frames: int | None
    codec: str
    seekable: bool


def discover(uri: str, timeout: float = 5.0) -> MediaInfo:
    """Look into a source without playing it.

    Args:
        uri: a URI, or the path of a file, as typed.
        timeout: seconds after which a source that says nothing counts as unreadable.

    Raises:
        MediaError: if it is missing, a folder, empty, cut off, of an unknown codec or has no video.
    """
    if not Gst.is_initialized():
        Gst.init(None)
    name, uri = _name_and_uri(uri)
    problem = file_problem(uri) if uri.startswith("file:") else None
    if problem:
        raise MediaError(f"{name}: {problem}")
    info = _look(name, uri, timeout)
    return _media_info(name, info)


def _name_and_uri(text: str) -> tuple[str, str]:
    """How messages call the source, and its URI."""
    if "://" in text or text.startswith("file:"):
        return location(text), text
    return text, GLib.filename_to_uri(str(Path(text).absolute()), None)


def _look(name: str, uri: str, timeout: float) -> GstPbutils.DiscovererInfo:
    watches: list[StartWatch] = []
    undecodable: list[str] = []

    def unknown_type(_reader: Gst.Element, _pad: Gst.Pad, stream: Gst.Caps) -> None:
        if stream[0].get_name().startswith("video/"):
            undecodable.append(GstPbutils.pb_utils_get_decoder_description(stream))

    def source_made(_discoverer: GstPbutils.Discoverer, source: Gst.Element) -> None:
        reader = source.get_parent()
        from elements.portable import nvidia  # makes element classes, which GStreamer must be initialised for

        reader.connect("autoplug-select", nvidia.select_any_other_decoder)
        reader.connect("unknown-type", unknown_type)
        watches.append(StartWatch(reader, lambda: post_error(source, _SILENT, "", *_DEMUX)))
        watches[-1].start()

    discoverer = GstPbutils.Discoverer.new(int(max(_SHORTEST, timeout) * Gst.SECOND))
    discoverer.connect("source-setup", source_made)
    try:
        info = discoverer.discover_uri(uri)
    except GLib.Error as error:
        raise MediaError(f"{name}: {explain(error, undecodable)}") from None
    finally:
        for watch in watches:
            watch.done()
    result, wanted = info.get_result(), GstPbutils.DiscovererResult
    if result == wanted.TIMEOUT:
        raise MediaError(f"{name}: cannot be read: it gave nothing within {timeout:g} s; damaged, or on a slow disk")
    if result == wanted.MISSING_PLUGINS and not _sized(info):
        missing = [detail.split("|")[3] for detail in info.get_missing_elements_installer_details() if "|" in detail]
        raise MediaError(f"{name}: {decoder_missing(missing)}")
    if result not in (wanted.OK, wanted.MISSING_PLUGINS):
        raise MediaError(f"{name}: cannot be read ({result.value_nick})")
    return info


def _sized(info: GstPbutils.DiscovererInfo) -> bool:
    """Whether the video could be decoded far enough to know its size."""
    return any(stream.get_width() for stream in info.get_video_streams())


def _media_info(name: str, info: GstPbutils.DiscovererInfo) -> MediaInfo:
    streams = [stream for stream in info.get_video_streams() if not stream.is_image()] or info.get_video_streams()
    if not streams:
        raise MediaError(f"{name}: {no_video([_codec(stream) for stream in info.get_stream_list()])}")
    video = streams[0]
    width, height = video.get_width(), video.get_height()
    if _orientation(video) in _TURNED:
        width, height = height, width
    rate = (video.get_framerate_num(), video.get_framerate_denom())
    fps = Fraction(*rate) if all(rate) else None
    duration = info.get_duration()
    seconds = duration / Gst.SECOND if 0 < duration < Gst.CLOCK_TIME_NONE else None
    frames = round(seconds * fps) if seconds and fps else None
    return MediaInfo(width, height, fps, seconds, frames, _codec(video), info.get_seekable())


def _orientation(video: GstPbutils.DiscovererVideoInfo) -> str:
    tags = video.get_tags()
    found, value = tags.get_string("image-orientation") if tags else (False, "")
    return str(value) if found else ""


def _codec(stream: GstPbutils.DiscovererStreamInfo) -> str:
    caps = stream.get_caps()
    return GstPbutils.pb_utils_get_codec_description(caps) or caps[0].get_name() if caps else "unknown"
