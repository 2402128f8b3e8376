"""A graph while it is being built: where the chain ends, and in which format frames leave it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from elements.analytics.rules import Rules
from pipelines.definition import DrawStage, SourceInfer
from pipelines.graph import Graph, Node, PropertyValue

QUEUE_BATCHES = 2
QUEUE_LIMITS: dict[str, PropertyValue] = {"max-size-buffers": QUEUE_BATCHES, "max-size-bytes": 0, "max-size-time": 0}


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


@dataclass(frozen=True, slots=True)
class DrawnRules:
    """Rules of an analyze stage that are to be drawn, by source id."""

    stage: str
    rules: Mapping[int, Rules]


@dataclass(slots=True)
class Draft:
    """``tail`` is the node that the next one is linked to; ``format`` is its output's, empty where not known.

    ``pads`` maps source ids to mux pads; ``mux_size`` is (width, height); ``sources`` are the sources' names by id;
    ``source_infer`` is what they have otherwise than infer stages, by id and stage;
    ``padding`` is the mux's; ``draw`` is the definition's draw stage;
    ``drawn_rules`` are to be drawn with it.
    """

    graph: Graph
    pads: dict[int, int]
    mux_size: tuple[int, int]
    sources: tuple[str, ...] = ()
    source_infer: tuple[Mapping[str, SourceInfer], ...] = ()
    padding: bool = False
    tail: str = ""
    format: str = ""
    draw: DrawStage | None = None
    drawn_rules: list[DrawnRules] = field(default_factory=list)

    def add(
        self,
        name: str,
        factory: str,
        origin: str,
        properties: Mapping[str, PropertyValue] | None = None,
        secret: Collection[str] = (),
        link: bool = True,
    ) -> str:
        """Add a node behind the tail and make it the tail (or, with ``link=False``, add it alone)."""
        self.graph.add(Node(name, factory, dict(properties or {}), frozenset(secret), origin))
        if link:
            self.graph.link(self.tail, name)
            self.tail = name
        return name

    def add_queue(self, name: str, origin: str) -> str:
        """A queue: what follows works on a thread of its own, at most `QUEUE_BATCHES` behind."""
        return self.add(name, "queue", origin, QUEUE_LIMITS)

    def add_queue_at(self, node: str, pad: str, name: str, origin: str) -> str:
        """A queue behind a particular pad of a node; makes it the tail."""
        self.add(name, "queue", origin, QUEUE_LIMITS, link=False)
        self.graph.link(node, name, source_pad=pad)
        self.tail = name
        return name

    def convert(self, formats: tuple[str, ...], name: str, origin: str) -> None:
        """See to it that frames are NVMM in one of ``formats`` (the first is made where they are not)."""
        if self.format in formats:
            return
        self.add(name, "nvvideoconvert", origin)
        self.add_caps(f"{name}-caps", origin, formats[0])
        self.format = formats[0]

    def add_caps(self, name: str, origin: str, fmt: str, size: tuple[int, int] | None = None) -> str:
        """A capsfilter for NVMM frames of a format and, if given, a (width, height)."""
        dimensions = f", width={size[0]}, height={size[1]}" if size else ""
        caps = f"video/x-raw(memory:NVMM), format={fmt}{dimensions}"
        return self.add(name, "capsfilter", origin, {"caps": caps})
