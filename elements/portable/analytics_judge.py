"""nvdsanalytics on the portable runtime's metadata, without GStreamer: for the element, and for replays."""

from __future__ import annotations

import logging

from elements.analytics.nvds_config import NvdsConfig, Stream
from elements.analytics.nvds_engine import NvdsStream, ObjectInfo, Seen
from elements.portable import osd
from elements.portable.analytics_drawing import displays
from elements.portable.meta import UNTRACKED_OBJECT_ID, FrameMeta, ObjectMeta, UserMeta

log = logging.getLogger("gstorch.analytics")

FRAME_META, OBJECT_META = 32, 33  # NVDS_USER_FRAME_META_NVDSANALYTICS, NVDS_USER_OBJ_META_NVDSANALYTICS
UNIQUE_ID = 17
_LINES, _OBJECTS = 1, 2  # osd-mode


class AnalyticsJudge:
    """Attaches to frames and objects what the rules of their source's pad say of them.

    Args:
        config: the configuration file.
        unique_id: of the element.
    """

    def __init__(self, config: NvdsConfig, unique_id: int = UNIQUE_ID) -> None:
        self._config, self._unique_id = config, unique_id
        self._streams: dict[int, NvdsStream] = {}
        self._told_untracked = False

    def judge(self, frame: FrameMeta) -> None:
        """One frame."""
        if not self._config.enable:
            return
        stream = self._stream(frame)
        objects = [_seen(item) for item in frame.objects]
        if stream.needs_tracks and any(seen.track_id is None for seen in objects) and not self._told_untracked:
            self._told_untracked = True
            log.warning("nvdsanalytics: lines and directions need track ids, and objects without one came")
        found, infos = stream.process(frame.buffer_pts, objects)
        frame.user.append(UserMeta(FRAME_META, found))
        for item, info in zip(frame.objects, infos, strict=True):
            if info:
                item.user.append(UserMeta(OBJECT_META, info))
                if self._config.osd_mode >= _OBJECTS:
                    _mark(item, info)
        if self._config.osd_mode >= _LINES:
            frame.displays.extend(displays(stream.rules, found, self._config.font_size))

    def forget(self, pad_index: int | None = None) -> None:
        """A stream (or, without a number, every one) begins anew."""
        if pad_index is None:
            self._streams.clear()
        else:
            self._streams.pop(pad_index, None)

    def _stream(self, frame: FrameMeta) -> NvdsStream:
        stream = self._streams.get(frame.pad_index)
        if stream is None:
            config = self._config
            scale = frame.pipeline_width / config.width, frame.pipeline_height / config.height
            rules = config.streams.get(frame.pad_index, Stream())
            stream = self._streams[frame.pad_index] = NvdsStream(rules, scale, self._unique_id)
        return stream


def _seen(item: ObjectMeta) -> Seen:
    rect = item.rect
    track_id = None if item.object_id == UNTRACKED_OBJECT_ID else item.object_id
    return Seen(item.class_id, track_id, (rect.left + rect.width / 2, rect.top + rect.height))


def _mark(item: ObjectMeta, info: ObjectInfo) -> None:
    """What ``osd-mode=2`` does to an object's text and border, blanks as observed."""
    parts = [f" ROI:{label}" for label in info.roi_status]
    parts += [f" DIR:{info.dir_status} "] if info.dir_status else []
    parts += [f" LC:{label} " for label in info.lc_status]
    parts += [f" {info.obj_status} "] if info.obj_status else []
    item.text.display_text = (item.text.display_text or "") + "".join(parts)
    if info.roi_status:
        item.rect.border_color = osd.Color(0.0, 1.0, 1.0, 1.0)
