"""From the batch to ordinary video: one frame in system memory for encoders and windows."""

from __future__ import annotations

from elements.base import AUTHOR, NVMM, ElementError, GObject, Gst, GstBase, caps, guarded, keep_floating, sink_and_src
from elements.portable.carrier import batch_of
from elements.portable.picture import FORMATS
from elements.portable.surface import Surface
from elements.portable.video_buffer import VideoLayout

_SYSTEM = "memory:SystemMemory"
_FORMAT_LIST = "{ " + ", ".join(FORMATS) + " }"

# What caps of a batch say beyond a frame, and colours, which may differ from frame to frame of a batch.
_DROPPED = ("batch-size", "num-surfaces-per-frame", "gpu-id", "nvbuf-memory-type", "colorimetry", "chroma-site")


class Download(GstBase.BaseTransform):
    """Takes batches of one frame, or plain frames, and gives plain frames in the format that is asked for.

    With ``even`` the frame is cut to even width and height, which 4:2:0 encoders need.
    """

    __gtype_name__ = "GstorchDownload"
    __gstmetadata__ = ("Download", "Filter/Video", "One frame of a batch in system memory", AUTHOR)
    __gsttemplates__ = sink_and_src(f"video/x-raw({NVMM}); video/x-raw", f"video/x-raw, format={_FORMAT_LIST}")

    def __init__(self, even: bool = False) -> None:
        super().__init__()
        keep_floating(self)
        self._even = even
        self._input: Gst.Caps | None = None
        self._input_layout: VideoLayout | None = None
        self._output: VideoLayout | None = None

    @guarded(None)
    def do_transform_caps(self, direction: Gst.PadDirection, source: Gst.Caps, allowed: Gst.Caps | None) -> Gst.Caps:
        result = Gst.Caps.new_empty()
        features = (_SYSTEM,) if direction == Gst.PadDirection.SINK else (NVMM, _SYSTEM)
        for feature in features:
            for index in range(source.get_size()):
                structure = source[index].copy()
                self._transform(structure, direction)
                result.append_structure_full(structure, Gst.CapsFeatures.from_string(feature))
        return allowed.intersect_full(result, Gst.CapsIntersectMode.FIRST) if allowed else result

    def _transform(self, structure: Gst.Structure, direction: Gst.PadDirection) -> None:
        for name in (*_DROPPED, "format"):
            structure.remove_field(name)
        if direction == Gst.PadDirection.SINK:
            structure.set_value("format", caps(f"x, format={_FORMAT_LIST}")[0].get_value("format"))
        for side in ("width", "height") if self._even else ():
            known, size = structure.get_int(side)
            if direction == Gst.PadDirection.SRC:
                structure.remove_field(side)
            elif known:
                structure.set_value(side, max(2, size & ~1))

    @guarded(False)
    def do_set_caps(self, sink_caps: Gst.Caps, src_caps: Gst.Caps) -> bool:
        self._input, self._input_layout = sink_caps, None
        self._output = VideoLayout.of_caps(src_caps)
        return True

    @guarded((Gst.FlowReturn.ERROR, None))
    def do_prepare_output_buffer(self, buffer: Gst.Buffer) -> tuple[Gst.FlowReturn, Gst.Buffer]:
        assert self._output
        surface = self._surface(buffer)
        width, height = self._output.width, self._output.height
        if (surface.width, surface.height) != (width, height):
            surface = surface.cropped(0, 0, width, height)
        frame = surface.to_buffer(self._output.format, self._output.color)
        frame.pts, frame.dts, frame.duration = buffer.pts, Gst.CLOCK_TIME_NONE, buffer.duration
        return Gst.FlowReturn.OK, frame

    def do_transform(self, _source: Gst.Buffer, _target: Gst.Buffer) -> Gst.FlowReturn:
        return Gst.FlowReturn.OK  # the output buffer came complete

    def _surface(self, buffer: Gst.Buffer) -> Surface:
        batch = batch_of(buffer)
        if batch is None:
            if self._input_layout is None:
                self._input_layout = VideoLayout.of_caps(self._input)
            return Surface.of_buffer(buffer, self._input_layout)
        if len(batch.surfaces) != 1:
            raise ElementError(
                f"got a batch of {len(batch.surfaces)} frames where one is needed; put nvmultistreamtiler (one picture "
                "of all sources) or nvstreamdemux (one branch per source) before it"
            )
        return batch.surfaces[0]


GObject.type_register(Download)
