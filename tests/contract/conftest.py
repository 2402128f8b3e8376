"""Pipelines for the API tests."""

from __future__ import annotations

from collections.abc import Iterator

import gi
import pytest

gi.require_version("Gst", "1.0")
from gi.repository import Gst  # noqa: E402

from elements.portable.pyservicemaker import Pipeline  # noqa: E402
from tests.batches import MakePipeline  # noqa: E402


@pytest.fixture
def make_pipeline() -> Iterator[MakePipeline]:
    """Makes pipelines (``factories`` linked in a row, named by factory) and takes them down afterwards."""
    made: list[Pipeline] = []

    def make(*factories: str, buffers: int = 3) -> Pipeline:
        pipeline = Pipeline(f"test-{len(made)}")
        made.append(pipeline)
        for factory in factories:
            pipeline.add(factory, factory)
        if "videotestsrc" in factories:
            pipeline["videotestsrc"].set({"num-buffers": buffers})
        if "fakesink" in factories:
            pipeline["fakesink"].set({"sync": False})
        if len(factories) > 1:
            pipeline.link(*factories)
        return pipeline

    yield make
    for pipeline in made:
        pipeline.gst_pipeline.set_state(Gst.State.NULL)
