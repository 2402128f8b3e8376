"""Definition to graph: a pure function, in DeepStream's own words."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pydantic import Secret

from pipelines.branches import add_outputs
from pipelines.definition import Definition, DrawStage, EventsOutput, InferStage, NodeStage, Source, TrackStage
from pipelines.draft import Draft
from pipelines.graph import Attachment, Graph, PropertyValue

MUX = "mux"
LIVE_DEFAULT_SIZE = (1920, 1080)
LIVE_QUEUE_FRAMES = 4
TRACKER_LIBRARY = "/opt/nvidia/deepstream/deepstream/lib/libnvds_nvmultiobjecttracker.so"
RTP_OVER_TCP = 4
LEAK_OLDEST = 2
BACKOFF = "gstorch-reconnect-backoff"  # our stand-in's own properties: -min, -max

# what the elements take at their sink pads (memory:NVMM)
INFER_FORMATS = ("RGB",)
TRACK_FORMATS = ("NV12", "RGBA", "I420")


@dataclass(frozen=True, slots=True)
class Facts:
    """What the builder must know about this machine and the sources; tuples are indexed by source id.

    Attributes:
        sizes: (width, height) of each source's upright frame, ``None`` where unknown (live).
        failed: source ids that cannot be opened and are left out.
        workers: frames that inference can work on at once.
        stand_ins: factories that are stand-ins; options that only NVIDIA's element has are then left unset.
    """

    sizes: tuple[tuple[int, int] | None, ...]
    failed: frozenset[int] = frozenset()
    workers: int = 1
    stand_ins: frozenset[str] = frozenset()


def source_node(source_id: int) -> str:
    """Name of a source's element."""
    return f"source-{source_id}"


def mux_pads(count: int, failed: frozenset[int]) -> dict[int, int]:
    """Mux pad number by source id, for the sources that take part. Pads are numbered in the order of linking."""
    return {source_id: pad for pad, source_id in enumerate(i for i in range(count) if i not in failed)}


def build_graph(definition: Definition, facts: Facts) -> Graph:
    """The graph of a definition.

    Sources feed the stream mux; the stages follow in order, each with the converter that its caps need; operators sit
    on the last stage, where the metadata is final; then one branch per output.
    """
    pads = mux_pads(len(definition.sources), facts.failed)
    size = mux_size(definition, facts)
    draft = Draft(Graph(definition.pipeline), pads=pads, mux_size=size)
    _add_sources(draft, definition, size, facts)
    _add_stages(draft, definition, facts)
    _add_operators(draft, definition)
    add_outputs(draft, definition, facts.sizes)
    return draft.graph


def mux_size(definition: Definition, facts: Facts) -> tuple[int, int]:
    """(width, height) of the batched frames: as declared, else the smallest even size that holds every source."""
    known = [size or LIVE_DEFAULT_SIZE for i, size in enumerate(facts.sizes) if i not in facts.failed]
    width, height = (math.ceil(max(side) / 2) * 2 for side in zip(*known, strict=True)) if known else LIVE_DEFAULT_SIZE
    return definition.mux.width or width, definition.mux.height or height


def _add_sources(draft: Draft, definition: Definition, size: tuple[int, int], facts: Facts) -> None:
    live = definition.mux.live
    if live is None:
        live = any(source.kind == "rtsp" for source in definition.sources)
    frames = len(draft.pads) if live else max(len(draft.pads), facts.workers)
    draft.add(
        MUX,
        "nvstreammux",
        "mux",
        {
            "batch-size": definition.mux.batch_size or frames,
            "width": size[0],
            "height": size[1],
            "batched-push-timeout": round(definition.mux.timeout * 1e6),
            "enable-padding": definition.mux.padding,
            "live-source": live,
        },
        link=False,
    )
    for source_id in draft.pads:
        source = definition.sources[source_id]
        name = source_node(source_id)
        secret = set() if source.kind == "file" else {"uri"}
        properties = _source_properties(source, source_id, facts)
        draft.add(name, "nvurisrcbin", f"sources.{source_id}", properties, secret, link=False)
        draft.graph.link(name, MUX, target_pad="sink_%u")
    draft.tail, draft.format = MUX, ""


def _source_properties(source: Source, source_id: int, facts: Facts) -> dict[str, PropertyValue]:
    properties: dict[str, PropertyValue] = {"uri": source.gst_uri.get_secret_value(), "source-id": source_id}
    if source.loop:
        properties["file-loop"] = True
    if source.kind == "rtsp":
        properties |= {
            "select-rtp-protocol": RTP_OVER_TCP,
            "latency": round(source.latency * 1000),
            "rtsp-reconnect-interval": math.ceil(source.timeout),
            "init-rtsp-reconnect-interval": math.ceil(source.timeout),
            "rtsp-reconnect-attempts": source.reconnect.attempts,
            "leaky": LEAK_OLDEST,
            "max-size-buffers": LIVE_QUEUE_FRAMES,
        }
        if "nvurisrcbin" in facts.stand_ins:
            properties[f"{BACKOFF}-min"] = source.reconnect.delay
            properties[f"{BACKOFF}-max"] = source.reconnect.max_delay
    return properties


def _add_stages(draft: Draft, definition: Definition, facts: Facts) -> None:
    for index, stage in enumerate(definition.stages):
        origin = f"stages.{index}"
        if isinstance(stage, InferStage):
            draft.add_queue(f"{stage.name}-queue", origin)
            draft.convert(INFER_FORMATS, f"{stage.name}-convert", origin)
            draft.add(f"{stage.name}", "pyinfer", origin, _infer_properties(stage))
        elif isinstance(stage, TrackStage):
            draft.add_queue("track-queue", origin)
            draft.convert(TRACK_FORMATS, "track-convert", origin)
            draft.add("track", "nvtracker", origin, _track_properties(stage, facts))
        elif isinstance(stage, NodeStage):
            secret = {key for key, value in stage.properties.items() if isinstance(value, Secret)}
            values = {k: v.get_secret_value() if isinstance(v, Secret) else v for k, v in stage.properties.items()}
            draft.add(f"{stage.name}", stage.factory, origin, values, secret)
            draft.format = ""


def _infer_properties(stage: InferStage) -> dict[str, PropertyValue]:
    """pyinfer's properties: what the stage declares; what it leaves to the model is left unset."""
    declared: dict[str, PropertyValue | None] = {
        "model-path": str(stage.model),
        "confidence-threshold": stage.confidence,
        "iou-threshold": stage.iou,
        "interval": stage.interval,
        "engine": _declared(stage.engine),
        "precision": _declared(stage.precision),
        "weights": str(stage.weights) if stage.weights else None,
        "trust": stage.trust or None,
        "device": stage.device,
        "unique-id": stage.unique_id,
        "on-error": stage.on_error,
        "batch-size": stage.batch_size,
        "labels": _labels(stage),
        "layout": _declared(stage.layout),
        "letterbox": _declared(stage.letterbox),
        "color": _declared(stage.color),
        "scale": _declared(stage.scale),
        "pad-value": stage.pad,
        "coordinates": _declared(stage.coordinates),
        "input-size": "x".join(str(side) for side in stage.input_size) if stage.input_size else None,
        "classes": ",".join(str(item) for item in stage.classes) if stage.classes else None,
    }
    return {key: value for key, value in declared.items() if value is not None}


def _labels(stage: InferStage) -> str | None:
    """A path, or names with commas between them."""
    if stage.labels is None:
        return None
    if isinstance(stage.labels, tuple):
        return ",".join(stage.labels) + ","  # with a comma at the end one name is not taken for a path
    return str(stage.labels)


def _declared(value: str) -> str | None:
    return None if value == "auto" else value


def _track_properties(stage: TrackStage, facts: Facts) -> dict[str, PropertyValue]:
    declared: dict[str, PropertyValue | None] = {
        "ll-config-file": str(stage.config) if stage.config else None,
        "ll-lib-file": None if "nvtracker" in facts.stand_ins else TRACKER_LIBRARY,
        "tracker-width": stage.width,
        "tracker-height": stage.height,
        "operate-on-class-ids": ";".join(str(class_id) for class_id in stage.classes) if stage.classes else None,
        "display-tracking-id": False,  # the draw stage writes the labels
    }
    return {key: value for key, value in declared.items() if value is not None}


def _add_operators(draft: Draft, definition: Definition) -> None:
    if draft.tail == MUX:
        draft.add_queue("mux-queue", "mux")
    names = [source.name for source in definition.sources]
    events = [output for output in definition.outputs if isinstance(output, EventsOutput)]
    for index, output in enumerate(events):
        params = {
            "path": "@stdout" if output.to_stdout else str(output.path),
            "pipeline": definition.pipeline,
            "sources": names,
            "padding": definition.mux.padding,
            "report": "@report",
        }
        draft.graph.attach(Attachment(draft.tail, f"events-{index}", "pipelines.operators.events:EventWriter", params))
    params = {"counts": "@counts", "report": "@report"}
    draft.graph.attach(Attachment(draft.tail, "counter", "pipelines.operators.counters:Counter", params))
    draft.draw = next((stage for stage in definition.stages if isinstance(stage, DrawStage)), None)
