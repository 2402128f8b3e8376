"""What Python's collector is told while a pipeline runs."""

import gc
import weakref

from elements.collector import collect_spared, resuming, spare


class Loop:
    """Only a collector can free it."""

    def __init__(self) -> None:
        self.own = self


def dropped() -> weakref.ref[Loop]:
    return weakref.ref(Loop())


def test_what_was_there_is_passed_over_until_the_end():
    with resuming():
        gone = dropped()
        spare()
        gc.collect()
        assert gone() is not None
    gc.collect()
    assert gone() is None
    assert gc.get_freeze_count() == 0


def test_what_comes_later_is_looked_at():
    with resuming():
        spare()
        gone = dropped()
        gc.collect()
        assert gone() is None


def test_after_something_large_has_gone():
    with resuming():
        gone = dropped()
        spare()
        collect_spared()
        assert gone() is None
        assert gc.get_freeze_count() > 0


def test_nothing_is_collected_where_nothing_is_passed_over():
    gc.collect()
    gone = dropped()
    gc.disable()
    try:
        collect_spared()
        assert gone() is not None
    finally:
        gc.enable()
