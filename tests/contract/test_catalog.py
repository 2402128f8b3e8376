"""The catalogue of GStreamer's registry, and `node` stages checked against it."""

from pathlib import Path

import pytest

from pipelines.catalog import GStreamerCatalog
from pipelines.definition import DefinitionError, load_definition


@pytest.fixture(scope="module")
def catalog() -> GStreamerCatalog:
    return GStreamerCatalog()


def test_elements_and_properties(catalog: GStreamerCatalog) -> None:
    assert {"queue", "identity", "videotestsrc"} <= catalog.factories()
    assert catalog.properties("no-such-element") is None
    known = catalog.properties("videotestsrc")
    assert known is not None
    pattern = known["pattern"].choices
    assert known["pattern"].type == "enum"
    assert pattern is not None
    assert (pattern["smpte"], pattern["snow"]) == (0, 1)
    assert (known["is-live"].type, known["num-buffers"].type, known["num-buffers"].minimum) == ("bool", "int", -1)


def test_types_of_properties(catalog: GStreamerCatalog) -> None:
    for factory, name, kind, writable in (
        ("capsfilter", "caps", "other", True),
        ("queue", "current-level-buffers", "int", False),
        ("filesink", "location", "string", True),
        ("identity", "drop-probability", "float", True),
    ):
        known = catalog.properties(factory)
        assert known is not None
        assert (known[name].type, known[name].writable) == (kind, writable)


def test_node_stages_are_checked_against_the_registry(catalog: GStreamerCatalog, tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(
        """
pipeline: x
sources: [a.mp4]
stages:
  - node: {factory: quue}
  - node: {factory: queue, properties: {leaky: downstream, max-size-bufers: 2}}
  - node: {factory: identity, properties: {sleep-time: 4294967296, silent: true, drop-probability: 0.5}}
  - node: {factory: capsfilter, properties: {caps: "video/x-raw(memory:NVMM), format=RGB"}}
"""
    )
    with pytest.raises(DefinitionError) as error:
        load_definition(file, environ={}, catalog=catalog)
    problems = [str(problem).removeprefix(f"{file}:") for problem in error.value.problems]
    assert len(problems) == 3
    assert problems[0].startswith("5:21: stages[0].node.factory: no element 'quue' (did you mean 'queue'?)")
    assert problems[1].startswith(
        "6:60: stages[1].node.properties.max-size-bufers: 'queue' has no property 'max-size-bufers' "
        "(did you mean 'max-size-buffers'"
    )
    assert problems[2] == "7:56: stages[2].node.properties.sleep-time: '4294967296' is too large (at most 4294967295)"
