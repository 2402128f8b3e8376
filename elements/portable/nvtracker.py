"""Stand-in for DeepStream's ``nvtracker``: ids for objects across frames, per source."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

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
    sink_and_src,
)
from elements.portable.carrier import writable_batch
from elements.portable.meta import CLOCK_TIME_NONE, FrameMeta
from elements.portable.stream_events import ended_stream
from elements.portable.tracking.config import NOMINAL_FPS, TrackerConfig, TrackerConfigError, load_tracker_config

if TYPE_CHECKING:
    from elements.portable.tracking.objects import SourceObjects

log = logging.getLogger("gstorch.tracker")

_RESTART_AFTER_EOS = 2  # bit of tracking-id-reset-mode


class NvTracker(PropertyTable, GstBase.BaseTransform):
    """Tracks the objects of each source and writes ids in place.

    ``ll-lib-file`` names NVIDIA's library and has no effect: the tracker here is ByteTrack, configured by the same
    ``ll-config-file``. Ids are unique per source, so the key of a track is (source id, object id). A stream whose time
    steps back gets new ids whatever ``tracking-id-reset-mode`` says. Objects with an angle are associated as turned
    boxes and keep a continuous angle, which NVIDIA's tracker cannot.
    """

    __gtype_name__ = "NvTracker"
    __gstmetadata__ = ("NvTracker (portable)", "Filter/Tracker", "Tracks objects across frames, per source", AUTHOR)
    __gsttemplates__ = sink_and_src(f"video/x-raw({NVMM}), format=(string){{ I420, NV12, RGBA }}")
    PROPERTIES = (
        Property("ll-lib-file", str, None, "Tracker library", effect=False),
        Property("ll-config-file", str, None, "Tracker configuration (YAML)"),
        Property("tracker-width", "uint", 960, "Width that the tracker works at", effect=False),
        Property("tracker-height", "uint", 544, "Height that the tracker works at", effect=False),
        Property("gpu-id", "uint", 0, "GPU", effect=False),
        Property("compute-hw", "uint", 0, "Hardware for scaling", effect=False),
        Property("tracking-surface-type", "uint", 0, "Surface type", effect=False),
        Property("display-tracking-id", bool, True, "Append the id to the object's text"),
        Property("tracking-id-reset-mode", "uint", 0, "2 or 3: ids from 1 after EOS", 0, 3),
        Property("input-tensor-meta", bool, False, "Use tensor metadata", effect=False),
        Property("tensor-meta-gie-id", "uint", 0, "Unit whose tensors to use", effect=False),
        Property("user-meta-pool-size", "uint", 32, "Size of the user metadata pool", effect=False),
        Property("sub-batches", str, "", "Sub-batches by source or size", effect=False),
        Property("sub-batch-err-recovery-trial-cnt", int, 0, "Retries after an error", -1, effect=False),
        Property("operate-on-class-ids", str, "", "Classes to track, '0;2'; others pass untouched. Empty: all"),
    )
    __gproperties__ = gproperties(PROPERTIES)

    def __init__(self) -> None:
        super().__init__()
        keep_floating(self)
        self.init_properties()
        self.set_in_place(True)
        self._config = TrackerConfig()
        self._class_ids: frozenset[int] | None = None
        self._sources: dict[int, SourceObjects] = {}
        self._times: dict[int, float] = {}
        self._first_ids: dict[int, int] = {}

    @guarded(False)
    def do_start(self) -> bool:
        import elements.portable.tracking.objects  # noqa: F401  half a second (scipy), better now than at the first frame

        self.warn_of_ignored_properties()
        self._config = self._load_config()
        self._class_ids = self._parse_class_ids()
        return True

    @guarded(False)
    def do_stop(self) -> bool:
        self._sources.clear()
        self._times.clear()
        self._first_ids.clear()
        return True

    @guarded(Gst.FlowReturn.ERROR)
    def do_transform_ip(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        for frame in writable_batch(buffer).frames:
            self._source(frame.pad_index).process(frame, self._stream_time(frame))
        return Gst.FlowReturn.OK

    @guarded(False)
    def do_sink_event(self, event: Gst.Event) -> bool:
        ended = ended_stream(event)
        if ended is not None:
            self._end_stream(ended)
        elif event.type == Gst.EventType.FLUSH_STOP:
            for source in self._sources.values():
                source.forget()
            self._times.clear()
        return bool(GstBase.BaseTransform.do_sink_event(self, event))

    def _source(self, pad_index: int) -> SourceObjects:
        source = self._sources.get(pad_index)
        if source is None:
            from elements.portable.tracking.objects import SourceObjects
            from elements.portable.tracking.tracker import SourceTracker

            tracker = SourceTracker(self._config, self._first_ids.get(pad_index, 1))
            source = SourceObjects(tracker, self._class_ids, self.values["display-tracking-id"])
            self._sources[pad_index] = source
        return source

    def _stream_time(self, frame: FrameMeta) -> float:
        """Seconds; one nominal frame after the last where the frame has no timestamp."""
        if frame.buffer_pts != CLOCK_TIME_NONE:
            time_s: float = frame.buffer_pts / 1e9
        else:
            time_s = self._times.get(frame.pad_index, -1 / NOMINAL_FPS) + 1 / NOMINAL_FPS
        self._times[frame.pad_index] = time_s
        return time_s

    def _end_stream(self, pad_index: int) -> None:
        """Drop the stream's tracks. Ids go on counting if it comes back, unless they are to restart."""
        source = self._sources.pop(pad_index, None)
        self._times.pop(pad_index, None)
        if source is not None:
            restart = self.values["tracking-id-reset-mode"] & _RESTART_AFTER_EOS
            self._first_ids[pad_index] = 1 if restart else source.tracker.next_id

    def _load_config(self) -> TrackerConfig:
        files = [name for name in (self.values["ll-config-file"] or "").split(";") if name.strip()]
        if len(files) > 1:
            raise ElementError(
                f"ll-config-file names {len(files)} files, one per sub-batch, which do not exist here: name one"
            )
        try:
            return load_tracker_config(files[0].strip()) if files else TrackerConfig()
        except TrackerConfigError as error:
            raise ElementError(str(error)) from None

    def _parse_class_ids(self) -> frozenset[int] | None:
        text = self.values["operate-on-class-ids"] or ""
        if not text.strip():
            return None
        parts = [part.strip() for part in text.split(";") if part.strip()]
        if not all(re.fullmatch(r"\d+", part) for part in parts):
            raise ElementError(f'operate-on-class-ids="{text}": class numbers separated by ";" are needed, as in "0;2"')
        return frozenset(map(int, parts))


FACTORIES: dict[str, type[Gst.Element]] = {"nvtracker": NvTracker}

GObject.type_register(NvTracker)
