"""From a definition to something that can be shown or run: runtime, facts about the sources, graph."""

from __future__ import annotations

import importlib
import logging
import os
import queue
import sys
import threading
from dataclasses import dataclass
from typing import TextIO

from pipelines.assemble import Assembly, assemble
from pipelines.builder import build_graph, mux_pads
from pipelines.bus import BusEvent, Inbox
from pipelines.definition import Definition, TrackStage
from pipelines.draft import Facts
from pipelines.graph import Graph
from pipelines.outcome import SourceCount
from pipelines.outputs import prepare_outputs
from pipelines.runner import Runner
from pipelines.runtime import Runtime, deepstream_available, load_runtime
from pipelines.sources import SourceFacts, SourceState, SourceStatus, survey

log = logging.getLogger("gstorch.runner")

TRACKING = "elements.portable.tracking.tracker"


@dataclass(frozen=True, slots=True)
class Plan:
    """A definition resolved on this machine. ``sources`` is indexed by source id."""

    definition: Definition
    runtime: Runtime
    sources: list[SourceFacts]
    graph: Graph


def make_plan(definition: Definition) -> Plan:
    """Load the runtime, look into the files, build the graph.

    Raises:
        RuntimeUnavailableError: if the definition asks for a runtime that is not here.
    """
    _import_ahead(definition)
    runtime = load_runtime(definition.runtime.prefer)
    sources = survey(definition.sources)
    return Plan(definition, runtime, sources, build_graph(definition, _facts(runtime, sources)))


def _import_ahead(definition: Definition) -> None:
    """Import what the stages will need while files are looked into: SciPy, for the tracker, takes half a second."""
    if any(isinstance(stage, TrackStage) for stage in definition.stages) and not deepstream_available():
        threading.Thread(target=importlib.import_module, args=(TRACKING,), name="import", daemon=True).start()


def _facts(runtime: Runtime, sources: list[SourceFacts]) -> Facts:
    sizes = tuple((s.media.width, s.media.height) if s.media else None for s in sources)
    failed = frozenset(i for i, s in enumerate(sources) if s.error)
    workers = len(os.sched_getaffinity(0)) if runtime.portable else 1
    return Facts(sizes, failed, workers, runtime.stand_ins)


def open_runner(plan: Plan, stdout: TextIO | None = None) -> Runner:
    """Assemble the plan's graph, ready to run.

    Args:
        plan: what to run.
        stdout: where an event output to ``-`` goes; default: the process's standard output.

    Raises:
        AssemblyError: if an element or link cannot be made here.
        OutputError: if an output cannot be written.
    """
    inbox: Inbox = queue.SimpleQueue()
    counts = [SourceCount() for _ in plan.sources]
    statuses = [
        SourceStatus(source, facts, SourceState.FAILED if facts.error else SourceState.STARTING, facts.error)
        for source, facts in zip(plan.definition.sources, plan.sources, strict=True)
    ]

    for status in statuses:
        if status.reason:
            log.error("source '%s': %s", status.source.name, status.reason)

    def report(text: str, trace: str) -> None:
        inbox.put(BusEvent("operator", text=text, debug=trace))

    if all(facts.error for facts in plan.sources):
        assembly = Assembly(None, None, plan.graph)
    else:
        prepare_outputs(plan.definition)
        shared = {"counts": counts, "report": report, "stdout": stdout or sys.stdout}
        assembly = assemble(plan.graph, plan.runtime, shared, plan.definition.where)
    failed = frozenset(i for i, facts in enumerate(plan.sources) if facts.error)
    return Runner(assembly, statuses, counts, mux_pads(len(statuses), failed), plan.definition.runtime, inbox)
