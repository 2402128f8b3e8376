"""Class names of rules that no object has."""

from __future__ import annotations

import logging

import pytest

from elements.filtering.rules import FilterRules
from elements.metadata.class_names import SURE_AFTER, UnseenNames


@pytest.fixture(autouse=True)
def every_level(caplog):
    caplog.set_level(logging.INFO, "gstorch.metadata")


def told(caplog):
    return [(record.levelname, record.message) for record in caplog.records]


def test_a_misspelt_name_is_a_warning_with_the_right_one(caplog):
    names = UnseenNames("filter", ["persn", "car"])
    names.see(["person", "car", "person"])
    assert told(caplog) == []
    names.tell()
    names.tell()
    assert told(caplog) == [
        ("WARNING", "filter: none of 3 objects was of class 'persn': did you mean 'person'?"),
    ]


def test_a_class_that_was_just_absent_is_none(caplog):
    names = UnseenNames("filter", ["truck", "person", "people"])
    names.see(["person"])
    names.tell()
    assert told(caplog) == [
        ("INFO", "filter: none of 1 objects was of class 'people'"),  # person is meant by a name of its own
        ("INFO", "filter: none of 1 objects was of class 'truck'"),
    ]


def test_it_is_told_while_the_run_goes_on(caplog):
    names = UnseenNames("filter", ["persn"])
    for _ in range(SURE_AFTER):
        names.see(["person"])
    names.see(["person"])
    assert len(told(caplog)) == 1


def test_without_objects_nothing_is_known(caplog):
    names = UnseenNames("filter", ["persn"])
    names.see([])
    names.tell()
    assert told(caplog) == []


def test_names_of_a_filter():
    rules = FilterRules(rename={"a": "b", 1: "c"}, keep=("b", 2), drop=("d",), class_confidence={"e": 0.5})
    assert rules.names == {"a", "b", "d", "e"}
