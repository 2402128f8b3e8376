"""The part of the graph behind the last stage: one branch per output that needs pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pipelines.definition import Definition, DisplayOutput, FileOutput
from pipelines.draft import Draft
from pipelines.graph import Attachment, PropertyValue

DRAW_FORMATS = ("RGBA",)
ENCODE_FORMATS = ("I420", "NV12")
CANVAS_LIMIT = (1920, 1080)
FRAGMENT_MS = 1000
FIRST_MOOV_THEN_FINALISE = 1
UNBUFFERED = 2
# As fast as frames come, and without waiting for a first frame: while one branch waits, an encoder of another one might
# still need more frames before it gives any.
PROMPT: dict[str, PropertyValue] = {"sync": False, "async": False}
ENCODERS = {"h264": ("nvv4l2h264enc", "h264parse"), "h265": ("nvv4l2h265enc", "h265parse")}

Size = tuple[int, int]
Tile = str | tuple[int, int]


def add_outputs(draft: Draft, definition: Definition, sizes: Sequence[Size | None]) -> None:
    """Add every output's branch; with none that needs pictures, the chain ends in a fakesink.

    Args:
        draft: ends with the last stage.
        definition: whose outputs.
        sizes: each source's (width, height) where known; a file per source has its source's size then.
    """
    branches = [output for output in definition.outputs if isinstance(output, FileOutput | DisplayOutput)]
    if not branches:
        draft.add("sink", "fakesink", "outputs", PROMPT)
        return
    if draft.draw is not None and draft.draw.keypoints:
        params = {"line_width": draft.draw.line_width, "report": "@report"}
        draft.graph.attach(
            Attachment(draft.tail, "draw-keypoints", "pipelines.operators.keypoints:DrawKeypoints", params)
        )
    if draft.draw is not None and draft.drawn_rules:
        params = {
            "drawn": {drawn.stage: drawn.rules for drawn in draft.drawn_rules},
            "padding": draft.padding,
            "mux_size": draft.mux_size,
            "font_size": draft.draw.font_size,
            "line_width": draft.draw.line_width,
            "report": "@report",
        }
        draft.graph.attach(
            Attachment(draft.tail, "draw-analytics", "pipelines.operators.drawn_rules:DrawRules", params)
        )
    trunk, trunk_format = draft.tail, draft.format
    if len(branches) > 1:
        trunk = draft.add("outputs", "tee", "outputs")
    for index, output in enumerate(branches):
        draft.tail, draft.format = trunk, trunk_format
        name, origin = f"output-{index}", f"outputs.{definition.outputs.index(output)}"
        draft.add_queue(f"{name}-queue", origin)
        if isinstance(output, DisplayOutput):
            _add_tiles(draft, name, origin, "auto", None)
            _add_drawing(draft, name, origin)
            draft.add(f"{name}-sink", "nveglglessink", origin, {"sync": True, "async": False})
        elif output.tile == "off" or (output.tile == "auto" and len(draft.pads) == 1):
            _add_file_per_source(draft, name, origin, output, definition, sizes)
        else:
            _add_tiles(draft, name, origin, output.tile, _declared(output))
            _add_drawing(draft, name, origin)
            _add_file(draft, name, origin, output, str(output.path))


def _declared(output: FileOutput) -> Size | None:
    return (output.width, output.height) if output.width and output.height else None


def _add_tiles(draft: Draft, name: str, origin: str, tile: Tile, declared: Size | None) -> None:
    rows, columns = grid(tile, len(draft.pads))
    width, height = declared or canvas_size(draft.mux_size, rows, columns)
    properties: dict[str, PropertyValue] = {"rows": rows, "columns": columns, "width": width, "height": height}
    draft.add(f"{name}-tiler", "nvmultistreamtiler", origin, properties)


def grid(tile: Tile, sources: int) -> tuple[int, int]:
    """(rows, columns): as declared, or the smallest near-square grid that holds every source."""
    if isinstance(tile, tuple):
        return tile
    sources = max(sources, 1)  # a definition whose sources all failed can be explained all the same
    columns = math.ceil(math.sqrt(sources))
    return math.ceil(sources / columns), columns


def canvas_size(tile: Size, rows: int, columns: int) -> Size:
    """The (width, height) that shows every tile in its own shape, even, at most `CANVAS_LIMIT`."""
    width, height = tile[0] * columns, tile[1] * rows
    scale = min(1.0, CANVAS_LIMIT[0] / width, CANVAS_LIMIT[1] / height)
    return round(width * scale / 4) * 4, round(height * scale / 4) * 4


def _add_file_per_source(
    draft: Draft, name: str, origin: str, output: FileOutput, definition: Definition, sizes: Sequence[Size | None]
) -> None:
    demux = draft.add(f"{name}-demux", "nvstreamdemux", origin)
    fmt = draft.format
    for source_id, pad in draft.pads.items():
        branch = f"{name}-{source_id}"
        draft.add_queue_at(demux, f"src_{pad}", f"{branch}-queue", origin)
        draft.format = fmt
        _add_source_picture(draft, branch, origin, _declared(output) or sizes[source_id], definition.mux.padding)
        _add_drawing(draft, branch, origin)
        source = str(definition.sources[source_id].name)
        _add_file(draft, branch, origin, output, str(output.path_for(source)))


def _add_source_picture(draft: Draft, name: str, origin: str, size: Size | None, padding: bool) -> None:
    """Undo the mux: cut its padding away and scale back to the source's size (made even)."""
    if size is None or size == draft.mux_size:
        return
    from elements.metadata.placement import Placement

    place = Placement.of(size, draft.mux_size, padding)
    crop = ":".join(str(round(v)) for v in (place.left, place.top, place.width, place.height))
    draft.add(f"{name}-crop", "nvvideoconvert", origin, {"src-crop": crop})
    even = (math.ceil(size[0] / 2) * 2, math.ceil(size[1] / 2) * 2)
    draft.add_caps(f"{name}-crop-caps", origin, DRAW_FORMATS[0], even)
    draft.format = DRAW_FORMATS[0]


def _add_drawing(draft: Draft, name: str, origin: str) -> None:
    if draft.draw is None:
        return
    draft.convert(DRAW_FORMATS, f"{name}-draw-convert", origin)
    options = draft.draw
    params = {
        "labels": options.labels,
        "ids": options.ids,
        "confidence": options.confidence,
        "line_width": options.line_width,
        "font_size": options.font_size,
        "attributes": options.attributes,
        "report": "@report",
    }
    operator = Attachment(draft.tail, f"{name}-style", "pipelines.operators.style:DrawStyle", params)
    draft.graph.attach(operator)
    shown: dict[str, PropertyValue] = {
        "display-bbox": options.boxes,
        "display-text": options.labels,
        "display-mask": options.masks,
    }
    draft.add(f"{name}-draw", "nvdsosd", origin, shown)


def _add_file(draft: Draft, name: str, origin: str, output: FileOutput, path: str) -> None:
    """Encode into a fragmented MP4: playable up to the last second even if the process is killed."""
    encoder, parser = ENCODERS[output.codec]
    draft.format = "" if draft.format not in ENCODE_FORMATS else draft.format
    draft.convert(ENCODE_FORMATS, f"{name}-encode-convert", origin)
    draft.add(f"{name}-encoder", encoder, origin, {"bitrate": output.bitrate})
    draft.add(f"{name}-parser", parser, origin)
    fragments = {"fragment-duration": FRAGMENT_MS, "fragment-mode": FIRST_MOOV_THEN_FINALISE}
    draft.add(f"{name}-mp4", "mp4mux", origin, fragments)
    draft.add(f"{name}-sink", "filesink", origin, {"location": path, "buffer-mode": UNBUFFERED, **PROMPT})
