"""The C structs of nvdsmeta.h and nvll_osd_struct.h, as DeepStream 9.x lays them out on 64 bit Linux.

`elements.metadata.nvds.binding` compares their sizes with those of the library in use before anything is touched.
Fields that nothing here uses are only there for the offsets of the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from ctypes import Structure, c_char, c_double, c_float, c_int32, c_int64, c_uint32, c_uint64, c_void_p

LABEL_SIZE = 128  # MAX_LABEL_SIZE, terminator included

# NvDsMetaType
BATCH_META = 1
FRAME_META = 2
OBJECT_META = 3


class BaseMeta(Structure):
    """NvDsBaseMeta: the head of every metadata struct."""

    _fields_ = (
        ("batch_meta", c_void_p),
        ("meta_type", c_int32),
        ("context", c_void_p),
        ("copy_func", c_void_p),
        ("release_func", c_void_p),
    )


class MetaPool(Structure):
    """NvDsMetaPool: where the elements of a batch come from."""

    _fields_ = (
        ("meta_type", c_int32),
        ("max_elements", c_uint32),
        ("element_size", c_uint32),
        ("num_empty", c_uint32),
        ("num_full", c_uint32),
        ("empty_list", c_void_p),
        ("full_list", c_void_p),
        ("copy_func", c_void_p),
        ("release_func", c_void_p),
    )


class BatchMeta(Structure):
    """NvDsBatchMeta."""

    _fields_ = (
        ("base", BaseMeta),
        ("max_frames_in_batch", c_uint32),
        ("num_frames_in_batch", c_uint32),
        ("frame_pool", c_void_p),
        ("object_pool", c_void_p),
        ("classifier_pool", c_void_p),
        ("display_pool", c_void_p),
        ("user_pool", c_void_p),
        ("label_pool", c_void_p),
        ("frames", c_void_p),
        ("user_metas", c_void_p),
        ("mutex", c_uint64 * 2),
        ("misc", c_int64 * 4),
        ("reserved", c_int64 * 4),
    )


class FrameMeta(Structure):
    """NvDsFrameMeta."""

    _fields_ = (
        ("base", BaseMeta),
        ("pad_index", c_uint32),
        ("batch_id", c_uint32),
        ("frame_num", c_int32),
        ("buf_pts", c_uint64),
        ("ntp_timestamp", c_uint64),
        ("source_id", c_uint32),
        ("num_surfaces_per_frame", c_int32),
        ("source_frame_width", c_uint32),
        ("source_frame_height", c_uint32),
        ("surface_type", c_uint32),
        ("surface_index", c_uint32),
        ("num_obj_meta", c_uint32),
        ("infer_done", c_int32),
        ("objects", c_void_p),
        ("displays", c_void_p),
        ("user_metas", c_void_p),
        ("misc", c_int64 * 4),
        ("pipeline_width", c_uint32),
        ("pipeline_height", c_uint32),
        ("sensor_info", c_uint64 * 4),
        ("reserved", c_int64 * 4),
    )


class Box(Structure):
    """NvBbox_Coords."""

    _fields_ = (("left", c_float), ("top", c_float), ("width", c_float), ("height", c_float))


class RectParams(Structure):
    """NvOSD_RectParams; colours are four doubles each."""

    _fields_ = (
        ("box", Box),
        ("border_width", c_uint32),
        ("border_color", c_double * 4),
        ("has_bg_color", c_uint32),
        ("reserved", c_uint32),
        ("bg_color", c_double * 4),
        ("has_color_info", c_int32),
        ("color_id", c_int32),
        ("rotation_angle", c_float),
    )


class MaskParams(Structure):
    """NvOSD_MaskParams; ``size`` in bytes."""

    _fields_ = (
        ("data", c_void_p),
        ("size", c_uint32),
        ("threshold", c_float),
        ("width", c_uint32),
        ("height", c_uint32),
    )


class TextParams(Structure):
    """NvOSD_TextParams, opaque here: pyservicemaker writes it."""

    _fields_ = (("opaque", c_uint64 * 13),)


class ObjectMeta(Structure):
    """NvDsObjectMeta."""

    _fields_ = (
        ("base", BaseMeta),
        ("parent", c_void_p),
        ("unique_component_id", c_int32),
        ("class_id", c_int32),
        ("object_id", c_uint64),
        ("detector_box", Box),
        ("tracker_box", Box),
        ("confidence", c_float),
        ("tracker_confidence", c_float),
        ("rect", RectParams),
        ("mask", MaskParams),
        ("text", TextParams),
        ("label", c_char * LABEL_SIZE),
        ("classifiers", c_void_p),
        ("user_metas", c_void_p),
        ("misc", c_int64 * 4),
        ("reserved", c_int64 * 4),
    )


class ClassifierMeta(Structure):
    """NvDsClassifierMeta."""

    _fields_ = (
        ("base", BaseMeta),
        ("num_labels", c_uint32),
        ("unique_component_id", c_int32),
        ("labels", c_void_p),
        ("classifier_type", c_void_p),
    )


class LabelInfo(Structure):
    """NvDsLabelInfo; ``long_label`` (pResult_label) is used instead of ``label`` where that is too short."""

    _fields_ = (
        ("base", BaseMeta),
        ("num_classes", c_uint32),
        ("label", c_char * LABEL_SIZE),
        ("long_label", c_void_p),
        ("class_id", c_uint32),
        ("label_id", c_uint32),
        ("probability", c_float),
    )


class UserMeta(Structure):
    """NvDsUserMeta."""

    _fields_ = (("base", BaseMeta), ("user_meta_data", c_void_p))


class _ListNode(Structure):
    """GList."""

    _fields_ = (("data", c_void_p), ("next", c_void_p), ("previous", c_void_p))


def list_items(head: int | None) -> Iterator[int]:
    """The data pointers of a GList. The list must not change meanwhile."""
    while head:
        node = _ListNode.from_address(head)
        yield node.data
        head = node.next
