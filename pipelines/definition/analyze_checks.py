"""Whether analyze stages have objects to look at and rules that fit the sources."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from elements.analytics.nvds_config import NvdsConfigError, load_nvds_config
from pipelines.definition.document import Document
from pipelines.definition.problems import KeyPath
from pipelines.definition.sources import Source
from pipelines.definition.stages import AnalyzeStage, NodeStage, Stage, TrackStage
from pipelines.definition.validation import did_you_mean

_GO_WITH_CONFIG = frozenset({"name", "config"})


def check_analyze_stages(document: Document, sources: Mapping[int, Source], stages: Mapping[int, Stage]) -> None:
    """Add what is wrong to the problems of ``document``. Items by their index in the definition; all have names."""
    names = [str(source.name) for source in sources.values()]
    for index, stage in stages.items():
        if not isinstance(stage, AnalyzeStage):
            continue
        path: KeyPath = ("stages", index, "analyze")
        if document.at((*path, "config")) is not None:
            _check_config(document, path, stage.config)
            continue
        before = [other for place, other in stages.items() if place < index]
        if not any(isinstance(other, TrackStage | NodeStage) for other in before):
            below = next((place for place, other in stages.items() if isinstance(other, TrackStage)), None)
            hint = "add a track stage above it" if below is None else f"move it below stages[{below}].track"
            document.problem(path, "only tracked objects count, and no track stage comes before it", hint, of_key=True)
        if not any(document.at((*path, key)) for key, _ in stage.rules):
            hint = "write zones, lines or directions, or name a config file"
            document.problem(path, "has no rules", hint, of_key=True)
        for key, rules in stage.rules:
            _check_names(document, (*path, key), [str(rule.name) for rule in rules], _sources_of(rules, names))
            for number, rule in enumerate(rules):
                _check_sources(document, (*path, key, number, "sources"), rule.sources or (), names)


def _sources_of(rules: Collection[object], names: Collection[str]) -> list[frozenset[str]]:
    """The sources that each rule is for."""
    return [frozenset(getattr(rule, "sources", None) or names) for rule in rules]


def _check_config(document: Document, path: KeyPath, file: Path | None) -> None:
    """DeepStream's element has its rules in the file, and settings of ours do not reach it."""
    if file is not None and document.look_for_files:  # a file that is not there is told elsewhere
        try:
            load_nvds_config(file)
        except NvdsConfigError as error:
            document.problem((*path, "config"), str(error))
    for key in document.at(path):
        if key not in _GO_WITH_CONFIG:
            document.problem((*path, key), f"'{key}' does not go with 'config'", "the file says it all", of_key=True)


def _check_names(document: Document, path: KeyPath, names: list[str], sources: list[frozenset[str]]) -> None:
    for number, name in enumerate(names):
        for earlier in range(number):
            if names[earlier] == name and sources[earlier] & sources[number]:
                source = sorted(sources[earlier] & sources[number])[0]
                place: KeyPath = (*path, number, "name")
                document.problem(place, f"source '{source}' has {document.shown(place)} already", "choose another name")
                break


def _check_sources(document: Document, path: KeyPath, wanted: Collection[str], names: Collection[str]) -> None:
    for number, name in enumerate(wanted):
        if name not in names:
            hint = did_you_mean(name, names) or f"there are: {', '.join(names)}"
            document.problem((*path, number), f"no source is named {document.shown((*path, number))}", hint)
