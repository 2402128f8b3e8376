"""Stand-in for DeepStream's ``nvdsanalytics``: areas, crowds, lines and directions, per source."""

from __future__ import annotations

import logging

from elements.analytics.nvds_config import NvdsConfig, NvdsConfigError, Stream, load_nvds_config
from elements.analytics.nvds_engine import NvdsStream, ObjectInfo, Seen
from elements.base import (
    AUTHOR,
    NVMM,
    ElementError,
    GObject,
    Gst,
    GstBase,
    Property,
    PropertyTable,
    gproperties,
    guarded,
    keep_floating,
    post_error,
    sink_and_src,
)
from elements.portable import osd
from elements.portable.analytics_drawing import displays
from elements.portable.carrier import batch_of, writable_batch
from elements.portable.meta import UNTRACKED_OBJECT_ID, FrameMeta, ObjectMeta, UserMeta
from elements.portable.stream_events import ended_stream

log = logging.getLogger("gstorch.analytics")

FRAME_META, OBJECT_META = 32, 33  # NVDS_USER_FRAME_META_NVDSANALYTICS, NVDS_USER_OBJ_META_NVDSANALYTICS
_LINES, _OBJECTS = 1, 2  # osd-mode


class NvDsAnalytics(PropertyTable, GstBase.BaseTransform):
    """Judges each source by the section of its pad and attaches what it finds as user metadata.

    What NVIDIA's element does where nobody has looked is guessed here: what counts as a crowd (as many as
    ``object-threshold``), and how far back a movement may have begun (30 frames).
    """

    __gtype_name__ = "NvDsAnalytics"
    __gstmetadata__ = ("NvDsAnalytics (portable)", "Filter/Metadata", "Areas, lines and directions per source", AUTHOR)
    __gsttemplates__ = sink_and_src(f"video/x-raw({NVMM}), format=(string){{ NV12, RGBA }}")
    PROPERTIES = (
        Property("config-file", str, None, "Configuration file: a key file, or YAML if it is named so"),
        Property("enable", bool, True, "Whether to judge; batches pass otherwise"),
        Property("unique-id", "uint", 17, "Id of this element in its metadata"),
    )
    __gproperties__ = gproperties(PROPERTIES)

    def __init__(self) -> None:
        super().__init__()
        keep_floating(self)
        self.init_properties()
        self.set_in_place(True)
        self._config = NvdsConfig()
        self._streams: dict[int, NvdsStream] = {}
        self._told_untracked = False

    @guarded(False)
    def do_start(self) -> bool:
        self._streams.clear()
        self._told_untracked = False
        if not self.values["config-file"]:
            self._refuse("config-file is not set")
            return False
        try:
            self._config = load_nvds_config(self.values["config-file"])
        except NvdsConfigError as error:
            self._refuse(str(error))
            return False
        return True

    @guarded(Gst.FlowReturn.ERROR)
    def do_transform_ip(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        if not (self.values["enable"] and self._config.enable):
            return Gst.FlowReturn.OK
        if batch_of(buffer) is None:
            raise ElementError(f"{self.get_name()}: NvDsBatchMeta not found for input buffer.")
        for frame in writable_batch(buffer).frames:
            self._judge(frame)
        return Gst.FlowReturn.OK

    @guarded(False)
    def do_sink_event(self, event: Gst.Event) -> bool:
        ended = ended_stream(event)
        if ended is not None:
            self._streams.pop(ended, None)
        elif event.type == Gst.EventType.FLUSH_STOP:
            self._streams.clear()
        return bool(GstBase.BaseTransform.do_sink_event(self, event))

    def _refuse(self, why: str) -> None:
        text = f"{self.get_name()}: Configuration file parsing failed: {why}"
        post_error(self, text, domain=Gst.LibraryError, code=Gst.LibraryError.SETTINGS)

    def _judge(self, frame: FrameMeta) -> None:
        stream = self._stream(frame)
        objects = [_seen(item) for item in frame.objects]
        if stream.needs_tracks and any(seen.track_id is None for seen in objects) and not self._told_untracked:
            self._told_untracked = True
            log.warning("%s: lines and directions need track ids, and objects without one came", self.get_name())
        found, infos = stream.process(frame.buffer_pts, objects)
        frame.user.append(UserMeta(FRAME_META, found))
        for item, info in zip(frame.objects, infos, strict=True):
            if info:
                item.user.append(UserMeta(OBJECT_META, info))
                if self._config.osd_mode >= _OBJECTS:
                    _mark(item, info)
        if self._config.osd_mode >= _LINES:
            frame.displays.extend(displays(stream.rules, found, self._config.font_size))

    def _stream(self, frame: FrameMeta) -> NvdsStream:
        stream = self._streams.get(frame.pad_index)
        if stream is None:
            config = self._config
            scale = frame.pipeline_width / config.width, frame.pipeline_height / config.height
            rules = config.streams.get(frame.pad_index, Stream())
            stream = self._streams[frame.pad_index] = NvdsStream(rules, scale, self.values["unique-id"])
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


FACTORIES: dict[str, type[Gst.Element]] = {"nvdsanalytics": NvDsAnalytics}

GObject.type_register(NvDsAnalytics)
