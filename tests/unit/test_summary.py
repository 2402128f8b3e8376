from __future__ import annotations

from io import StringIO
from types import SimpleNamespace

from rich.console import Console

from app.summary import table
from pipelines.outcome import SourceCount
from pipelines.sources import SourceFacts, SourceState, SourceStatus


def test_the_table_shows_names_and_reasons_as_they_are():
    """Square brackets are markup for the table's library; here they are text."""
    source = SimpleNamespace(name="cam [/bold] 1", kind="file", loop=False)
    status = SourceStatus(source, SourceFacts(), SourceState.FAILED, "[Errno 5] gone")
    runner = SimpleNamespace(statuses=[status], counts=[SourceCount()], dropped=lambda source_id: 0)
    console = Console(width=200, record=True, file=StringIO())
    console.print(table(runner))
    text = console.export_text()
    assert "cam [/bold] 1" in text
    assert "[Errno 5] gone" in text
