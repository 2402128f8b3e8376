"""DeepStream's low-level tracker configuration (``ll-config-file``), as far as it means something here."""

from __future__ import annotations

import difflib
import logging
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

log = logging.getLogger("gstorch.tracker")

NOMINAL_FPS = 30.0  # DeepStream counts ages in frames; here a frame of age is 1/30 s of stream time


class TrackerConfigError(ValueError):
    """A tracker configuration that cannot be used. The text names file, line, key and what is allowed."""


@dataclass(frozen=True, slots=True)
class TrackerConfig:
    """What the tracker does, in DeepStream's words. ``configs/trackers/default.yml`` explains each value."""

    min_detector_confidence: float = 0.0
    tentative_detector_confidence: float = 0.2
    probation_age: int = 3
    early_termination_age: int = 1
    max_shadow_tracking_age: int = 45
    max_targets_per_stream: int = 150
    min_iou_diff_4_new_target: float = 0.7
    use_unique_id: bool = False
    check_class_match: bool = True
    min_matching_score_4_iou: float = 0.1

    def hits_to_confirm(self, gap_s: float) -> int:
        """Detections in a row that fill the probation age, where each stands for ``gap_s`` seconds of stream time.

        With the default age of 3 (0.1 s): three at 30 frames/s, two at 15, one at 10 and below. On the first frame the
        gap is not known yet (0): then as many as the age says.
        """
        hits = self.probation_age if gap_s <= 0 else self.probation_age / NOMINAL_FPS / gap_s
        return min(max(1, self.probation_age), max(1, math.ceil(hits - 0.1)))  # timestamps are rounded

    @property
    def shadow_seconds(self) -> float:
        """Stream time that an active target survives without a detection."""
        return self.max_shadow_tracking_age / NOMINAL_FPS


@dataclass(frozen=True, slots=True)
class _Key:
    """Where a field is in the file, and what it may be."""

    field: str
    kind: type
    low: float
    high: float


_INT_MAX = 2**31 - 1
_KEYS = {
    ("BaseConfig", "minDetectorConfidence"): _Key("min_detector_confidence", float, 0, 1),
    ("TargetManagement", "probationAge"): _Key("probation_age", int, 0, _INT_MAX),
    ("TargetManagement", "earlyTerminationAge"): _Key("early_termination_age", int, 0, _INT_MAX),
    ("TargetManagement", "maxShadowTrackingAge"): _Key("max_shadow_tracking_age", int, 0, _INT_MAX),
    ("TargetManagement", "maxTargetsPerStream"): _Key("max_targets_per_stream", int, 1, _INT_MAX),
    ("TargetManagement", "minIouDiff4NewTarget"): _Key("min_iou_diff_4_new_target", float, 0, 1),
    ("TrajectoryManagement", "useUniqueID"): _Key("use_unique_id", bool, 0, 1),
    ("DataAssociator", "checkClassMatch"): _Key("check_class_match", bool, 0, 1),
    ("DataAssociator", "tentativeDetectorConfidence"): _Key("tentative_detector_confidence", float, 0, 1),
    ("DataAssociator", "minMatchingScore4Iou"): _Key("min_matching_score_4_iou", float, 0, 1),
}


def load_tracker_config(path: str | Path) -> TrackerConfig:
    """Read a DeepStream tracker file (``config_tracker_*.yml``).

    Keys that change nothing here (visual tracker, re-identification, …) are named once in the log.

    Raises:
        TrackerConfigError: with file and line, if the file is missing, is not YAML or holds a value out of its range.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise TrackerConfigError(f"{path}: cannot read the tracker configuration: {reason}") from error
    values: dict[str, Any] = {}
    idle: list[str] = []
    for section, key, node in _entries(path, text):
        known = _KEYS.get((section, key))
        if known is None:
            idle.append(f"{section}.{key}")
        elif known.field in values:
            raise TrackerConfigError(f"{_place(path, node)}: {section}.{key} is given twice")
        else:
            values[known.field] = _value(path, f"{section}.{key}", node, known)
    _report(path, idle)
    return TrackerConfig(**values)


def _report(path: Path, idle: list[str]) -> None:
    """Name the keys without effect: likely misspellings as warnings, DeepStream's other keys for information."""
    spellings = [key for _, key in _KEYS]
    for name in list(idle):
        near = difflib.get_close_matches(name.partition(".")[2], spellings, n=1, cutoff=0.9)
        if near:
            section = next(section for section, key in _KEYS if key == near[0])
            log.warning("%s: unknown key %s; did you mean %s.%s?", path, name, section, near[0])
            idle.remove(name)
    if idle:
        log.info("%s: no effect here: %s", path, ", ".join(idle))


def _entries(path: Path, text: str) -> Iterator[tuple[str, str, yaml.Node]]:
    """(section, key, value node) of the file. OpenCV's first line ``%YAML:1.0`` is no YAML directive: it is blanked."""
    try:
        root = yaml.compose(re.sub(r"\A\ufeff?%YAML:.*", "", text), yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise TrackerConfigError(f"{path}:{line}: not valid YAML: {error.problem}") from error
    except yaml.YAMLError as error:
        raise TrackerConfigError(f"{path}: not valid YAML: {error}") from error
    if root is None:
        return
    for section, body in _pairs(path, root, "the file"):
        if isinstance(body, yaml.ScalarNode) and not body.value:  # a section whose keys are all commented out
            continue
        for key, node in _pairs(path, body, section):
            yield section, key, node


def _pairs(path: Path, node: yaml.Node, what: str) -> Iterator[tuple[str, yaml.Node]]:
    if not isinstance(node, yaml.MappingNode):
        raise TrackerConfigError(f"{_place(path, node)}: {what} must hold 'key: value' lines")
    for key, value in node.value:
        yield str(key.value), value


def _value(path: Path, name: str, node: yaml.Node, key: _Key) -> Any:
    wanted = {float: "a number", int: "a whole number", bool: "0 or 1"}[key.kind]
    try:
        number = float(node.value if node.value not in ("true", "false") else node.value == "true")
        fits = key.low <= number <= key.high and (key.kind is float or number.is_integer())
    except (TypeError, ValueError):
        fits = False
    if not fits:
        limits = "" if key.kind is bool else f" from {key.low:g}" + (f" to {key.high:g}" if key.high < _INT_MAX else "")
        shown = node.value if isinstance(node, yaml.ScalarNode) else "a block"
        raise TrackerConfigError(f"{_place(path, node)}: {name} = {shown}: {wanted}{limits} is needed")
    return key.kind(number)


def _place(path: Path, node: yaml.Node) -> str:
    return f"{path}:{node.start_mark.line + 1}"
