"""How the runner finds the GStreamer pipeline behind pyservicemaker's."""

from __future__ import annotations

from typing import Any

import pytest

from elements.base import Gst
from pipelines.assemble import AssemblyError, gst_pipeline
from pipelines.graph import Graph, Node


class NvidiasPipeline:
    """NVIDIA's Pipeline has no way to its GStreamer pipeline."""


@pytest.fixture
def pipeline_with_pyinfer() -> Any:
    from elements.pyinfer import register

    register()
    pipeline = Gst.Pipeline.new("p")
    pipeline.add(Gst.ElementFactory.make("pyinfer", "detector"))
    return pipeline


def test_an_element_of_ours_leads_to_nvidias_pipeline(pipeline_with_pyinfer):
    graph = Graph("g")
    graph.add(Node("detector", "pyinfer"))
    assert gst_pipeline(NvidiasPipeline(), graph) == pipeline_with_pyinfer


def test_without_one_the_run_is_refused():
    with pytest.raises(AssemblyError, match="add an infer stage"):
        gst_pipeline(NvidiasPipeline(), Graph("g"))


def test_the_portable_pipeline_shows_it():
    from elements.portable.pyservicemaker import Pipeline

    pipeline = Pipeline("p")
    assert gst_pipeline(pipeline, Graph("g")) is pipeline.gst_pipeline
