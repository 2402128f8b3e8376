"""Stand-in for DeepStream's ``nvdsanalytics``: areas, crowds, lines and directions, per source."""

from __future__ import annotations

import logging

from elements.analytics.nvds_config import NvdsConfigError, load_nvds_config
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
from elements.portable.analytics_judge import UNIQUE_ID, AnalyticsJudge
from elements.portable.carrier import batch_of, writable_batch
from elements.portable.stream_events import ended_stream

log = logging.getLogger("gstorch.analytics")


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
        Property("unique-id", "uint", UNIQUE_ID, "Id of this element in its metadata"),
    )
    __gproperties__ = gproperties(PROPERTIES)

    def __init__(self) -> None:
        super().__init__()
        keep_floating(self)
        self.init_properties()
        self.set_in_place(True)
        self._judge: AnalyticsJudge | None = None  # from start to stop

    @guarded(False)
    def do_start(self) -> bool:
        if not self.values["config-file"]:
            self._refuse("config-file is not set")
            return False
        try:
            config = load_nvds_config(self.values["config-file"])
        except NvdsConfigError as error:
            self._refuse(str(error))
            return False
        for idle in config.without_effect:
            log.warning("%s: %s", self.get_name(), idle)
        self._judge = AnalyticsJudge(config, self.values["unique-id"])
        return True

    @guarded(False)
    def do_stop(self) -> bool:
        self._judge = None
        return True

    @guarded(Gst.FlowReturn.ERROR)
    def do_transform_ip(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        if self._judge is None or not self.values["enable"]:
            return Gst.FlowReturn.OK
        if batch_of(buffer) is None:
            raise ElementError(f"{self.get_name()}: NvDsBatchMeta not found for input buffer.")
        for frame in writable_batch(buffer).frames:
            self._judge.judge(frame)
        return Gst.FlowReturn.OK

    @guarded(False)
    def do_sink_event(self, event: Gst.Event) -> bool:
        ended = ended_stream(event)
        if self._judge is not None and ended is not None:
            self._judge.forget(ended)
        elif self._judge is not None and event.type == Gst.EventType.FLUSH_STOP:
            self._judge.forget()
        return bool(GstBase.BaseTransform.do_sink_event(self, event))

    def _refuse(self, why: str) -> None:
        text = f"{self.get_name()}: Configuration file parsing failed: {why}"
        post_error(self, text, domain=Gst.LibraryError, code=Gst.LibraryError.SETTINGS)


FACTORIES: dict[str, type[Gst.Element]] = {"nvdsanalytics": NvDsAnalytics}

GObject.type_register(NvDsAnalytics)
