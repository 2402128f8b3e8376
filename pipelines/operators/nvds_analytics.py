"""Results of nvdsanalytics, NVIDIA's or the one that stands in for it, as JSON like that of our own rules."""

from __future__ import annotations

from typing import Any

from elements.metadata.edit import attach_json, find_jsons
from pipelines.operators.base import Operator, Report
from pipelines.operators.exchange import ANALYTICS


class CopyAnalytics(Operator):
    """Attaches JSON ``analytics`` to frames, ``{stage: results}``, and to objects that the element speaks of.

    Args:
        name: of the stage.
        report: see `Operator`.
    """

    def __init__(self, name: str, report: Report) -> None:
        super().__init__(report)
        self._name = name

    def process(self, batch_meta: Any) -> None:
        """Copy what the element found in one batch."""
        for frame in batch_meta.frame_items:
            for user in frame.nvdsanalytics_frame_items:
                self._attach(frame, frame_result(user.as_nvdsanalytics_frame()))
            for item in frame.object_items:
                for user in item.nvdsanalytics_obj_items:
                    self._attach(item, object_result(user.as_nvdsanalytics_obj()))

    def _attach(self, target: Any, result: dict[str, Any]) -> None:
        known = find_jsons(target, (ANALYTICS,)).get(ANALYTICS, {})
        attach_json(target, ANALYTICS, {**known, self._name: result})


def frame_result(found: Any) -> dict[str, Any]:
    """pyservicemaker's AnalyticsFrameMeta as plain data. The element knows one way across a line, in."""
    crowded = dict(found.oc_status)
    zones = {
        name: {"count": count, **({"crowded": bool(crowded[name])} if name in crowded else {})}
        for name, count in dict(found.obj_in_roi_cnt).items()
    }
    lines = {name: {"in": count} for name, count in dict(found.obj_lc_cum_cnt).items()}
    return {kind: results for kind, results in (("zones", zones), ("lines", lines)) if results}


def object_result(info: Any) -> dict[str, Any]:
    """pyservicemaker's AnalyticsObjInfo as plain data."""
    result = {
        "zones": [*info.roi_status, *info.oc_status],
        "crossed": [{"line": name, "direction": "in"} for name in info.lc_status],
        "directions": [info.dir_status] if info.dir_status else [],
        "status": info.obj_status.strip() if info.obj_status else "",
    }
    return {kind: values for kind, values in result.items() if values}
