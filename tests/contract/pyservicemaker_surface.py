"""What NVIDIA's pyservicemaker offers: a table of facts, written from its bindings (release 9.1 and later).

For each class its members by kind: ``r`` (read), ``rw`` (read and write) or ``()`` (call), then the class of the result
where it is one of these; ``*`` before it means an iterable of them. The modules are in the table, too.
"""

from __future__ import annotations


def _members(*lines: str) -> dict[str, str]:
    """``"kind: name name …"`` lines as ``{name: kind}``."""
    found = {}
    for line in lines:
        kind, names = line.split(": ")
        found.update(dict.fromkeys(names.split(), kind))
    return found


_USER_METAS = "() *UserMetadata: user_meta_items retrieve_structure_usermeta"
_USER_META = (
    "rw: meta_type",
    "(): set_user_data_json get_user_data_json as_preprocess_batch",
    "() AnalyticsObjInfo: as_nvdsanalytics_obj",
    "() AnalyticsFrameMeta: as_nvdsanalytics_frame",
    "(): as_obj_reid as_structure_str",
    "() TensorOutputUserMetadata: as_tensor_output",
    "() SegmentationUserMetadata: as_segmentation",
)
_OBJECT = ("r: name", "(): set")
_ENUM = "r: name value"

CLASSES: dict[str, dict[str, str]] = {
    "module": _members(
        "() Pipeline: Pipeline",
        "() Probe: Probe",
        "() Buffer: Buffer",
        "() Receiver: Receiver",
        "() Feeder: Feeder",
        "() Tensor: as_tensor",
        "() BatchMetadataOperator: BatchMetadataOperator",
        "() BufferOperator: BufferOperator",
        "() BufferObserver: BufferObserver",
        "() BufferRetriever: BufferRetriever",
        "() BufferProvider: BufferProvider",
        "r StateTransitionMessage: StateTransitionMessage",
        "r DynamicSourceMessage: DynamicSourceMessage",
        "r EOSMessage: EOSMessage",
        "r PipelineState: PipelineState",
        "r ColorFormat: ColorFormat",
        "r osd: osd",
        "(): Flow SourceConfig SensorInfo RecordConfig CommonFactory probe register_probe",
        "r: MediaType RenderMode utils signal __version__",
    ),
    "Pipeline": _members(
        "() Pipeline: add link attach start prepare activate wait stop seek",
        "(): start_rtsp_server start_recording stop_recording stop_recording_by_session_id",
    ),
    "Node": _members("r: name", "(): set get link find", "() Node: attach"),
    "Object": _members(*_OBJECT),
    "Probe": _members(*_OBJECT, "() Probe: create"),
    "Receiver": _members(*_OBJECT),
    "Feeder": _members(*_OBJECT),
    "BatchMetadataOperator": _members("(): handle_metadata get_property"),
    "BufferOperator": _members("(): handle_buffer get_property"),
    "BufferObserver": _members("(): handle_buffer get_property"),
    "BufferRetriever": _members("(): consume get_property"),
    "BufferProvider": _members("(): generate get_property"),
    "PipelineMessage": {},
    "EOSMessage": {},
    "StateTransitionMessage": _members("r: old_state new_state origin"),
    "DynamicSourceMessage": _members("r: source_added source_id sensor_id sensor_name uri"),
    "PipelineState": _members(_ENUM, "r: INVALID EMPTY READY PAUSED PLAYING"),
    "ColorFormat": _members(_ENUM, "r: RGB RGBA I420"),
    "Buffer": _members(
        "r: batch_size timestamp",
        "r BatchMetadata: batch_meta",
        "() Tensor: extract",
        "(): get_chunk_id measure_latency",
    ),
    "Tensor": _members(
        "r: shape strides dtype device_type",
        "(): size __dlpack__ __dlpack_device__",
        "() Tensor: clone to_gpu",
        "() Buffer: wrap",
    ),
    "BatchMetadata": _members(
        _USER_METAS,
        "r: n_frames is_audio audio_frame_items",
        "r *FrameMetadata: frame_items",
        "r *UserMetadata: preprocess_batch_items",
        "() DisplayMetadata: acquire_display_meta",
        "() FrameMetadata: acquire_frame_meta",
        "() ObjectMetadata: acquire_object_meta",
        "() UserMetadata: acquire_user_meta",
        "(): acquire_event_message_meta acquire_preprocess_batch_meta acquire_obj_reid_meta append extract",
    ),
    "FrameMetadata": _members(
        _USER_METAS,
        "r: frame_number pad_index batch_id source_id source_width source_height pipeline_width pipeline_height",
        "r: buffer_pts ntp_timestamp",
        "r *ObjectMetadata: object_items",
        "r *UserMetadata: tensor_items segmentation_items nvdsanalytics_frame_items",
        "(): append",
    ),
    "ObjectMetadata": _members(
        _USER_METAS,
        "rw: class_id object_id unique_component_id confidence tracker_confidence label nv_bbox_info",
        "rw Rect: rect_params",
        "rw Mask: mask_params",
        "rw TextParams: text_params",
        "r *ClassifierMetadata: classifier_items",
        "r *UserMetadata: tensor_items nvdsanalytics_obj_items obj_reid_items",
        "(): append",
    ),
    "ClassifierMetadata": _members(
        "r: n_labels unique_component_id classifier_type", "(): get_n_label", "() LabelInfo: get_label_info"
    ),
    "LabelInfo": _members("r: label class_id prob label_id num_classes"),
    "DisplayMetadata": _members(
        "r: n_rects n_labels n_lines n_arrows n_circles", "(): add_text add_rect add_line add_arrow add_circle"
    ),
    "UserMetadata": _members(*_USER_META),
    "TensorOutputUserMetadata": _members(*_USER_META, "r: unique_id", "(): get_layers"),
    "SegmentationUserMetadata": _members(
        *_USER_META, "r: unique_id classes width height class_map class_probabilities_map"
    ),
    "AnalyticsObjInfo": _members("r: roi_status oc_status lc_status dir_status unique_id obj_status"),
    "AnalyticsFrameMeta": _members("r: oc_status obj_in_roi_cnt obj_lc_curr_cnt obj_lc_cum_cnt unique_id obj_cnt"),
    "osd": _members(
        "() Color: Color",
        "() Text: Text",
        "() TextParams: TextParams",
        "() Rect: Rect",
        "() Line: Line",
        "() Arrow: Arrow",
        "() Circle: Circle",
        "() Mask: Mask",
        "r FontFamily: FontFamily",
        "r ArrowHead: ArrowHead",
        "r: Font EventHandler",
    ),
    "FontFamily": _members(_ENUM, "r: Serif"),
    "ArrowHead": _members(_ENUM, "r: Start End Both"),
    "Color": _members("rw: r g b a"),
    "Font": _members("rw: name size", "rw Color: color"),
    "Text": _members("rw: display_text x_offset y_offset set_bg_color", "rw Font: font", "rw Color: bg_color"),
    "TextParams": _members(
        "rw: display_text x_offset y_offset set_bg_clr", "rw Font: font_params", "rw Color: text_bg_clr"
    ),
    "Rect": _members(
        "rw: left top width height rotation_angle border_width has_bg_color", "rw Color: border_color bg_color"
    ),
    "Line": _members("rw: x1 y1 x2 y2 width", "rw Color: color"),
    "Arrow": _members("rw: x1 y1 x2 y2 width head", "rw Color: color"),
    "Circle": _members("rw: xc yc radius has_bg_color width", "rw Color: color bg_color"),
    "Mask": _members("rw: threshold mask_array"),
}

EXTENSIONS = {("Pipeline", "gst_pipeline")}
"""What the portable module offers beyond NVIDIA's; to be used behind ``hasattr`` only."""
