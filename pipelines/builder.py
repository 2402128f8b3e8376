"""Definition to graph: a pure function, in DeepStream's own words."""

from __future__ import annotations

import math

from pipelines.branches import add_outputs
from pipelines.definition import Definition, EventsOutput, RecordOutput, Source
from pipelines.draft import Draft, Facts
from pipelines.graph import Attachment, Graph, PropertyValue
from pipelines.stages import add_stage

MUX = "mux"
LIVE_DEFAULT_SIZE = (1920, 1080)
LIVE_QUEUE_FRAMES = 4
RTP_OVER_TCP = 4
LEAK_OLDEST = 2
BACKOFF = "gstorch-reconnect-backoff"  # our stand-in's own properties: -min, -max


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
    names = tuple(str(source.name) for source in definition.sources)
    draft = Draft(
        Graph(definition.pipeline),
        pads,
        size,
        names,
        tuple(s.infer for s in definition.sources),
        definition.mux.padding,
    )
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
        add_stage(draft, stage, f"stages.{index}", facts)


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
            "mux_size": draft.mux_size,
            "embeddings": output.embeddings,
        }
        draft.graph.attach(Attachment(draft.tail, f"events-{index}", "pipelines.operators.events:EventWriter", params))
    for index, record in enumerate(output for output in definition.outputs if isinstance(output, RecordOutput)):
        params = {
            "path": str(record.path),
            "fmt": record.format,
            "sources": names,
            "padding": definition.mux.padding,
            "mux_size": draft.mux_size,
            "report": "@report",
        }
        draft.graph.attach(Attachment(draft.tail, f"record-{index}", "pipelines.operators.recorders:Recorder", params))
    params = {"counts": "@counts", "report": "@report"}
    draft.graph.attach(Attachment(draft.tail, "counter", "pipelines.operators.counters:Counter", params))
