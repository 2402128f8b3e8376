"""Try operators on scripted frames, without video and without a pipeline.

from pipelines.testing import ScriptedFrame, objects_of, run_operator

def test_a_crowd_is_told():
    frame = ScriptedFrame(objects_of((0, 0, 10, 20), (30, 0, 40, 20)), ["person", "person"])
    result = run_operator("shop:crowded", [frame], params={"limit": 1})
    assert result.events == [{"source": "source-0", "frame": 0, "event": "crowded", "people": 2}]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pipelines.scripted import ScriptedFrame as ScriptedFrame
from pipelines.scripted import batch_of, use_portable_api
from pipelines.scripted import objects_of as objects_of

if TYPE_CHECKING:
    from pipelines.operators.view import FrameView


@dataclass(slots=True)
class Result:
    """What an operator did.

    Attributes:
        frames: the frames as an operator behind it would see them, in order.
        events: what it emitted: ``source``, ``frame``, ``event`` and its data, in order.
        stats: frames processed, failed and dropped.
        failures: why a run would have stopped (``on_error: stop``); the frames behind the failure are left as they are.
    """

    frames: list[FrameView] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    stats: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


def run_operator(
    operator: str | Callable[..., Any],
    frames: Sequence[ScriptedFrame],
    params: Mapping[str, Any] | None = None,
    *,
    sources: Sequence[str] = (),
    on_error: Literal["stop", "skip"] = "stop",
    mux: tuple[int, int] | None = None,
    padding: bool = False,
    reads: Sequence[str] = (),
) -> Result:
    """Run an operator as ``operate: {operator: …, params: …}`` does, one batch per frame.

    Args:
        operator: ``package.module:name``, or the function or class itself.
        frames: what it sees, in order.
        params: its parameters.
        sources: names of the sources by id; default: source-0, source-1 …
        on_error: as in the definition.
        mux: (width, height) of the batched frames; default: as large as each source's.
        padding: whether the mux keeps the aspect ratio by padding.
        reads: names of attached data to show in the result's frames, beside the usual ones.

    Raises:
        ElementError: if there is no such operator, or it does not take these parameters.
    """
    use_portable_api()
    from pipelines.operators.exchange import EVENTS, placement_of, view_of
    from pipelines.operators.user import UserOperator

    names = list(sources) or [f"source-{i}" for i in range(1 + max((f.source_id for f in frames), default=0))]
    result = Result()
    runner = UserOperator(
        name="operator",
        operator=operator,
        params=params or {},
        sources=names,
        padding=padding,
        mux_size=mux,
        run="inline",
        queue=1,
        overflow="drop-oldest",
        on_error=on_error,
        report=lambda text, _trace: result.failures.append(text),
    )
    for frame in frames:
        batch = batch_of([frame], mux, padding)
        runner.handle_metadata(batch)
        for meta in batch.frame_items:
            view = view_of(meta, names[frame.source_id], placement_of(meta, padding), reads)
            result.frames.append(view)
            result.events += [{"source": view.source, "frame": view.number, **e} for e in view.data.get(EVENTS, [])]
    runner.close()
    result.stats = runner.stats
    return result
