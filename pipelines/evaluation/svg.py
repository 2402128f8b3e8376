"""Line plots as SVG text, to be put into a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from pipelines.evaluation.annotations import Floats

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#666666")
"""Colours that stay apart for colour-blind people too (Okabe and Ito), then used again with dashes."""

_WIDTH, _HEIGHT = 460, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 12, 30, 40
_MOST_POINTS = 400
_TICKS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True, slots=True)
class Line:
    """A named curve; ``x`` and ``y`` (K,) are from 0 to 1."""

    name: str
    x: Floats
    y: Floats


def plot(title: str, x_label: str, y_label: str, lines: Sequence[Line]) -> str:
    """Curves in a square from 0 to 1. Each has its name as a tooltip."""
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">',
        f'<text x="{_LEFT}" y="18" class="title">{escape(title)}</text>',
        *_axes(x_label, y_label),
    ]
    for number, line in enumerate(lines):
        points = " ".join(f"{_x(x):.1f},{_y(y):.1f}" for x, y in zip(*_thinned(line), strict=True))
        parts.append(f'<polyline points="{points}" {stroke(number)}><title>{escape(line.name)}</title></polyline>')
    return "\n".join([*parts, "</svg>"])


def stroke(number: int) -> str:
    """SVG attributes of the n-th curve."""
    dashes = number // len(COLOURS)
    dash = f' stroke-dasharray="{2 + 4 * (dashes % 4)} 3"' if dashes else ""
    return f'fill="none" stroke-width="1.8" stroke="{COLOURS[number % len(COLOURS)]}"{dash}'


def _axes(x_label: str, y_label: str) -> list[str]:
    parts = []
    for tick in _TICKS:
        x, y = _x(tick), _y(tick)
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}M{x:.1f} {_TOP}V{_HEIGHT - _BOTTOM}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 15}" text-anchor="middle">{tick:g}</text>')
    middle_x, middle_y = _x(0.5), _y(0.5)
    parts.append(f'<text x="{middle_x:.1f}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>')
    parts.append(
        f'<text transform="translate(13 {middle_y:.1f}) rotate(-90)" text-anchor="middle">{escape(y_label)}</text>'
    )
    return parts


def _thinned(line: Line) -> tuple[Floats, Floats]:
    index = np.unique(np.linspace(0, len(line.x) - 1, min(len(line.x), _MOST_POINTS)).round().astype(int))
    return line.x[index], line.y[index]


def _x(value: float) -> float:
    return _LEFT + float(value) * (_WIDTH - _LEFT - _RIGHT)


def _y(value: float) -> float:
    return _HEIGHT - _BOTTOM - float(value) * (_HEIGHT - _TOP - _BOTTOM)
