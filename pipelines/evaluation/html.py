"""An evaluation as one HTML file that needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np

from pipelines.evaluation.evaluate import Evaluation, Precision
from pipelines.evaluation.precision import RECALLS
from pipelines.evaluation.svg import Line, plot, stroke
from pipelines.evaluation.tracks import Tracking

_STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 960px; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid #8884; }
th:first-child, td:first-child { text-align: left; }
.plots { display: flex; flex-wrap: wrap; gap: 1rem; } .plots > * { flex: 1 1 400px; }
svg { width: 100%; } svg text { font: 11px system-ui, sans-serif; fill: currentColor; }
svg .title { font-weight: 600; font-size: 13px; } svg .grid { stroke: #8884; fill: none; }
.key svg { width: 24px; height: 8px; vertical-align: middle; margin-right: .5em; }
.note { color: #b45309; }
"""


def page(result: Evaluation, title: str, inputs: Sequence[tuple[str, str]]) -> str:
    """The report.

    Args:
        result: what to show.
        title: its heading.
        inputs: what was evaluated, as pairs of name and value.
    """
    about = [*inputs, ("frames", f"{result.frames} of {result.sequences} videos or pictures")]
    parts = [
        f"<h1>{escape(title)}</h1>",
        _table((), [[escape(name), escape(value)] for name, value in about]),
        *(f'<p class="note">{escape(note)}</p>' for note in result.notes),
        *_precision("Rotated boxes" if result.rotated else "Boxes", result.boxes),
        *(_precision("Masks", result.masks) if result.masks else []),
        *(_precision("Key points (OKS in place of overlap)", result.keypoints) if result.keypoints else []),
        *(_tracks(result.tracks) if result.tracks else []),
        *_confusion(result),
    ]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head>\n<body>\n" + "\n".join(parts) + "\n</body></html>\n"
    )


def _precision(heading: str, precision: Precision) -> list[str]:
    head = ("class", "AP50:95", "AP50", "AP75", "precision", "recall", "F1", "at confidence", "true", "predicted")
    rows = [["all", *map(_share, (precision.map, precision.map50, precision.map75)), *[""] * 6]]
    for number, item in enumerate(precision.classes):
        shares = (item.ap, item.ap50, item.ap75, item.precision, item.recall, item.f1, item.confidence)
        key = f'<span class="key"><svg viewBox="0 0 24 8"><path d="M0 4H24" {stroke(number)}/></svg></span>'
        rows.append([key + escape(item.name), *map(_share, shares), str(item.truth), str(item.predicted)])
    curves = [Line(item.name, RECALLS, item.curve) for item in precision.classes]
    f1 = [
        Line(item.name, item.scores, 2 * item.precisions * item.recalls / (item.precisions + item.recalls + 1e-12))
        for item in precision.classes
    ]
    return [
        f"<h2>{heading}</h2>",
        _table(head, rows),
        '<div class="plots">',
        plot("Precision and recall, overlap 0.5", "recall", "precision", curves),
        plot("F1 by confidence, overlap 0.5", "confidence", "F1", f1),
        "</div>",
    ]


def _tracks(tracks: Tracking) -> list[str]:
    head = ("", "HOTA", "DetA", "AssA", "LocA", "MOTA", "MOTP", "IDF1", "id switches", "fragments", "true", "predicted")
    rows = []
    for name, item in [("all", tracks.total), *tracks.classes.items(), *tracks.sequences.items()]:
        shares = (item.hota, item.deta, item.assa, item.loca, item.mota, item.motp, item.idf1)
        counts = (item.switches, item.fragments, item.truth, item.predicted)
        rows.append([escape(name), *map(_share, shares), *map(str, counts)])
    return ["<h2>Tracks</h2>", _table(head, rows)]


def _confusion(result: Evaluation) -> list[str]:
    names = [*result.names, "nothing"]
    of_class = np.maximum(result.confusion.sum(axis=1, keepdims=True), 1)
    strength = result.confusion / of_class
    rows = [
        [
            escape(name),
            *(
                f'<span style="background: rgb(0 114 178 / {share:.2f}); padding: .2rem .5rem">{count}</span>'
                for count, share in zip(counts.tolist(), shares.tolist(), strict=True)
            ),
        ]
        for name, counts, shares in zip(names, result.confusion, strength, strict=True)
    ]
    return [
        "<h2>Confusion</h2>",
        "<p>True class down, predicted class across, at the confidence of the table above and overlap 0.5.</p>",
        _table(("", *map(escape, names)), rows),
    ]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are HTML already."""
    lines = ["<table>"]
    if head:
        lines.append("<tr>" + "".join(f"<th>{cell}</th>" for cell in head) + "</tr>")
    lines += ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows]
    return "\n".join([*lines, "</table>"])


def _share(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"
