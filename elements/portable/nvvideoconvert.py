"""nvvideoconvert for host frames.

Batches stay lazy: format, size and crop are declared on their surfaces. Frames that leave to system memory, and frames
outside of batches, are converted. NVMM frames outside of batches are system-memory buffers under the NVMM caps feature,
or on a GPU NVIDIA's, which are downloaded.
"""

from __future__ import annotations

import ctypes

import cv2
import gi

from elements.base import (
    AUTHOR,
    NVMM,
    ElementError,
    GObject,
    Gst,
    GstBase,
    GstVideo,
    Property,
    PropertyTable,
    enum_type,
    gproperties,
    guarded,
    keep_floating,
    sink_and_src,
)
from elements.portable import nvidia, rescale
from elements.portable.carrier import OPAQUE_SIZE, attach_batch, detached_batch, writable_batch
from elements.portable.meta import BatchMeta
from elements.portable.nv_enums import COPY_HW, gpu_properties
from elements.portable.picture import Rect
from elements.portable.rescale import Scaling
from elements.portable.surface import Surface
from elements.portable.video_buffer import VideoLayout

_FORMATS = "{ I420, NV12, RGBA, RGB, BGRx, BGR, GRAY8 }"
_CAPS = f"video/x-raw({NVMM}), format={_FORMATS}; video/x-raw, format={_FORMATS}"
_SYSTEM = "memory:SystemMemory"
_NO_CROP = "0:0:0:0"
_OF_THE_FORMAT = ("format", "width", "height", "colorimetry", "chroma-site", "pixel-aspect-ratio", "interlace-mode")
_OF_THE_BATCH = ("batch-size", "num-surfaces-per-frame", "nvbuf-memory-type", "gpu-id")

_FLIP = enum_type(
    "GstorchNvFlipMethod",
    {
        0: "none",
        1: "counterclockwise",
        2: "rotate-180",
        3: "clockwise",
        4: "horizontal-flip",
        5: "upper-right-diagonal",
        6: "vertical-flip",
        7: "upper-left-diagonal",
    },
)
_PROPERTIES = (
    Property("flip-method", _FLIP, 0, "Turn or mirror the picture"),
    Property("src-crop", str, _NO_CROP, "Part of the input to take, left:top:width:height"),
    Property("dest-crop", str, _NO_CROP, "Where on the output to put it, left:top:width:height"),
    *gpu_properties(memory_type=2, interpolation=6),
    Property("copy-hw", COPY_HW, 1, "Hardware for copying", effect=False),
    Property("output-buffers", "uint", 4, "Buffers in the output pool", effect=False),
    Property("disable-passthrough", bool, False, "Copy also when nothing changes", effect=False),
    Property("bl-output", bool, False, "Block-linear output", effect=False),
    Property("contiguous-buffers", bool, False, "Contiguous output memory", effect=False),
    Property("allow-odd-crop", bool, True, "Allow odd crop rectangles", effect=False),
    Property("silent", bool, False, "Say nothing", effect=False),
)


class NvVideoConvert(PropertyTable, GstBase.BaseTransform):
    """Converts format, size, crop, orientation and memory of frames, batched or not; metadata follows the picture."""

    __gtype_name__ = "NvVideoConvert"
    __gstmetadata__ = ("nvvideoconvert (CPU)", "Filter/Converter/Video/Scaler", "Converts and scales video", AUTHOR)
    __gsttemplates__ = sink_and_src(_CAPS)
    PROPERTIES = _PROPERTIES
    __gproperties__ = gproperties(PROPERTIES)

    def __init__(self) -> None:
        super().__init__()
        keep_floating(self)
        self.init_properties()
        self.set_qos_enabled(False)
        self._any_layout = False  # whether downstream reads GstVideoMeta

    # --- negotiation --------------------------------------------------------------------------------------------------

    @guarded(None)
    def do_transform_caps(self, direction: Gst.PadDirection, caps: Gst.Caps, wanted: Gst.Caps | None) -> Gst.Caps:
        """Preferred first: the same caps, the other memory, then any format and size in the same order."""
        everything = Gst.Caps.new_empty()
        for free in (False, True):
            for index in range(caps.get_size()):
                feature = NVMM if caps.get_features(index).contains(NVMM) else _SYSTEM
                for memory in (feature, _SYSTEM if feature == NVMM else NVMM):
                    structure = caps[index].copy()
                    if free or self.values["flip-method"] in rescale.TURNS:
                        _remove(structure, _OF_THE_FORMAT)
                    if memory == _SYSTEM or direction == Gst.PadDirection.SRC:
                        _remove(structure, _OF_THE_BATCH)
                    everything.append_structure_full(structure, Gst.CapsFeatures.from_string(memory))
        possible = everything.intersect_full(Gst.Caps.from_string(_CAPS), Gst.CapsIntersectMode.FIRST)
        return wanted.intersect_full(possible, Gst.CapsIntersectMode.FIRST) if wanted else possible

    @guarded(None)
    def do_fixate_caps(self, direction: Gst.PadDirection, caps: Gst.Caps, other: Gst.Caps) -> Gst.Caps:
        """What the peer leaves open stays as it is on the other side."""
        given, chosen = caps[0], other[0].copy()
        size = ["width", "height"]
        values = [given.get_int(field)[1] for field in size]
        if self.values["flip-method"] in rescale.TURNS:
            values.reverse()
        for field, value in zip(size, values, strict=True):
            if chosen.has_field(field):
                chosen.fixate_field_nearest_int(field, value)
            else:
                chosen.set_value(field, value)
        if chosen.get_string("format") is None:
            chosen.fixate_field_string("format", given.get_string("format"))
        found, numerator, denominator = given.get_fraction("framerate")
        if found and chosen.has_field("framerate"):
            chosen.fixate_field_nearest_fraction("framerate", numerator, denominator)
        fixed = Gst.Caps.new_empty()
        fixed.append_structure_full(chosen, other.get_features(0).copy())
        return fixed.fixate()

    @guarded(False)
    def do_set_caps(self, incaps: Gst.Caps, outcaps: Gst.Caps) -> bool:
        self._input, self._output = VideoLayout.of_caps(incaps), VideoLayout.of_caps(outcaps)
        self._to_nvmm = outcaps.get_features(0).contains(NVMM)
        self._from_nvmm = incaps.get_features(0).contains(NVMM)
        self._flip = int(self.values["flip-method"])
        self._region = _rectangle("src-crop", self.values["src-crop"], self._input.width, self._input.height)
        self._target = _rectangle("dest-crop", self.values["dest-crop"], self._output.width, self._output.height)
        unchanged = self._input == self._output and not (self._flip or self._region or self._target)
        # outside of batches, our NVMM frames differ from others by their caps only; caps don't tell NVIDIA's from ours
        only_label = not _is_batch(incaps) and not nvidia.decodes_on_gpu()
        self.set_passthrough(unchanged and (self._to_nvmm == self._from_nvmm or only_label))
        self.set_in_place(_is_batch(incaps) and _is_batch(outcaps))
        return True

    def do_propose_allocation(self, _decided: Gst.Query | None, query: Gst.Query) -> bool:
        # decoders then hand out their own memory with its strides instead of copying each frame
        query.add_allocation_meta(GstVideo.video_meta_api_get_type(), None)
        return True

    def do_decide_allocation(self, query: Gst.Query) -> bool:
        # no pool, also not downstream's: outputs are batches, the decoder's memory, or made to measure
        for _ in range(query.get_n_allocation_pools()):
            query.remove_nth_allocation_pool(0)
        self._any_layout, _ = query.find_allocation_meta(GstVideo.video_meta_api_get_type())
        return True

    @guarded(False)
    def do_start(self) -> bool:
        self.warn_of_ignored_properties()
        for name in ("src-crop", "dest-crop"):
            _numbers(name, self.values[name])
        return True

    # --- frames -------------------------------------------------------------------------------------------------------

    def do_transform_size(
        self, _direction: Gst.PadDirection, _caps: Gst.Caps, _size: int, other: Gst.Caps
    ) -> tuple[bool, int]:
        """Frames bring their own memory; batches need an opaque buffer."""
        return True, OPAQUE_SIZE if _is_batch(other) else 0

    @guarded(Gst.FlowReturn.ERROR)
    def do_transform(self, buffer: Gst.Buffer, out: Gst.Buffer) -> Gst.FlowReturn:
        """Not called for what passes through: that costs no Python."""
        batch = detached_batch(buffer, out)  # a frame that came out of a batch may carry one without pictures
        pictures = batch.surfaces if batch else []
        if batch is not None:
            attach_batch(out, self._convert_batch(batch))
        if pictures and self._to_nvmm:
            return Gst.FlowReturn.OK
        surface = batch.surfaces[0] if batch and pictures else self._convert(Surface.of_buffer(buffer, self._input))
        if batch is not None:
            batch.drop_pictures()  # encoders hold the frame for long, and with it its metadata
        frame = surface.to_buffer(self._output.format, self._output.color, self._any_layout)
        out.copy_into(frame, Gst.BufferCopyFlags.MEMORY | Gst.BufferCopyFlags.META, 0, frame.get_size())
        return Gst.FlowReturn.OK

    @guarded(Gst.FlowReturn.ERROR)
    def do_transform_ip(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        """From batch to batch: the buffer itself says nothing about the pictures, so it stays."""
        self._convert_batch(writable_batch(buffer))
        return Gst.FlowReturn.OK

    def _convert_batch(self, batch: BatchMeta) -> BatchMeta:
        if (self._input.width, self._input.height) == (self._output.width, self._output.height) and not (
            self._flip or self._region or self._target
        ):
            for surface in batch.surfaces:
                surface.format = self._output.format
            return batch
        batch.surfaces = [self._convert(surface) for surface in batch.surfaces]
        width, height = self._input.width, self._input.height
        x1, y1, x2, y2 = self._region or (0, 0, width, height)
        left, top, right, bottom = self._target or (0, 0, self._output.width, self._output.height)
        crop_width, crop_height = x2 - x1, y2 - y1
        turned = (crop_height, crop_width) if self._flip in rescale.TURNS else (crop_width, crop_height)
        scaling = Scaling((right - left) / turned[0], (bottom - top) / turned[1], left, top)
        for frame in batch.frames:
            Scaling(1, 1, -x1, -y1).apply(frame)
            if self._flip:
                rescale.flip(frame, self._flip, round(crop_width), round(crop_height))
            scaling.apply(frame)
        return batch

    def _convert(self, surface: Surface) -> Surface:
        region = self._region
        if self._flip:
            x1, y1, x2, y2 = region or (0, 0, surface.width, surface.height)
            upright = surface.cropped(x1, y1, round(x2 - x1), round(y2 - y1)).rgb()
            surface, region = Surface.of_array(_flipped(upright, self._flip)), None
        out = self._output
        return surface.mapped(out.width, out.height, out.format, region, self._target)


def _is_batch(caps: Gst.Caps) -> bool:
    return bool(caps.get_features(0).contains(NVMM) and caps[0].has_field("batch-size"))


def _remove(structure: Gst.Structure, fields: tuple[str, ...]) -> None:
    for field in fields:
        structure.remove_field(field)


def _flipped(rgb: cv2.typing.MatLike, method: int) -> cv2.typing.MatLike:
    if method == rescale.COUNTERCLOCKWISE:
        return cv2.rotate(rgb, cv2.ROTATE_90_COUNTERCLOCKWISE)
    if method == rescale.CLOCKWISE:
        return cv2.rotate(rgb, cv2.ROTATE_90_CLOCKWISE)
    if method in rescale.TURNS:
        rgb = cv2.transpose(rgb)
    axes = {rescale.HORIZONTAL: 1, rescale.VERTICAL: 0, rescale.ROTATE_180: -1, rescale.UPPER_RIGHT: -1}
    return cv2.flip(rgb, axes[method]) if method in axes else rgb


def _numbers(name: str, text: str | None) -> list[int]:
    try:
        left, top, width, height = (int(part) for part in (text or _NO_CROP).split(":"))
    except ValueError:
        raise ElementError(f"{name}={text}: must be left:top:width:height, in pixels") from None
    return [left, top, width, height]


def _rectangle(name: str, text: str | None, width: int, height: int) -> Rect | None:
    """The crop rectangle; ``None`` for the whole.

    Raises:
        ElementError: if it cannot be read or leaves the picture.
    """
    left, top, w, h = _numbers(name, text)
    if not w or not h:
        return None
    if left < 0 or top < 0 or left + w > width or top + h > height:
        raise ElementError(f"{name}={text} leaves the picture of {width}x{height}")
    return (left, top, left + w, top + h)


def _pass_through_without_python(kind: type[GstBase.BaseTransform]) -> None:
    """Clear a field of the C class, which PyGObject does not offer: else ``do_transform_ip`` is called then, too."""
    fields = gi.Repository.get_default().find_by_name("GstBase", "BaseTransformClass").get_fields()
    (offset,) = (field.get_offset() for field in fields if field.get_name() == "transform_ip_on_passthrough")
    class_of = ctypes.CDLL("libgobject-2.0.so.0").g_type_class_ref
    class_of.argtypes, class_of.restype = [ctypes.c_size_t], ctypes.c_void_p
    ctypes.c_int.from_address(class_of(hash(kind.__gtype__)) + offset).value = False


GObject.type_register(NvVideoConvert)
_pass_through_without_python(NvVideoConvert)
FACTORIES = {"nvvideoconvert": NvVideoConvert}
