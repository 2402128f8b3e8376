"""nvstreammux's policy: which frames make a batch, and when it leaves."""

import pytest

from elements.portable.batching import FILE_PATIENCE, Batcher, Input


def batcher(sources: int, size: int, live: bool = False, timeout: float | None = 0.04) -> Batcher:
    made = Batcher(size, live, timeout)
    made.inputs = [Input(index) for index in range(sources)]
    return made


def deliver(b: Batcher, counts: dict[int, int], now: float = 0.0) -> None:
    for index, count in counts.items():
        for k in range(count):
            b.put(b.inputs[index], f"{index}.{k}", now)


def took(b: Batcher, now: float = 0.0) -> list[str]:
    return [frame for _, frame in b.take(now)]


def test_a_batch_waits_for_every_running_file() -> None:
    b = batcher(3, 3)
    deliver(b, {0: 2, 1: 1})
    assert not b.ready(0.5)
    deliver(b, {2: 1})
    assert b.ready(0.5)
    assert took(b) == ["0.0", "1.0", "2.0"]


def test_one_file_fills_all_slots() -> None:
    b = batcher(1, 4)
    deliver(b, {0: 3})
    assert not b.ready(0)
    deliver(b, {0: 1})
    assert b.ready(0)
    assert len(took(b)) == 4


@pytest.mark.parametrize(("size", "each"), [(3, 1), (4, 1), (5, 1), (6, 2), (8, 2), (9, 3)])
def test_a_batch_holds_whole_rounds(size: int, each: int) -> None:
    b = batcher(3, size)
    deliver(b, {0: each, 1: each})
    assert not b.ready(0)
    deliver(b, {2: each})
    assert b.ready(0)
    assert took(b) == [f"{pad}.{k}" for k in range(each) for pad in range(3)]


def test_a_limit_per_source_holds_when_others_have_ended() -> None:
    b = batcher(4, 4, timeout=None)
    b.most = 1
    for source in b.inputs[1:]:
        source.ended = True
    deliver(b, {0: 3})
    assert b.ready(0)
    assert took(b) == ["0.0"]
    assert len(b.inputs[0].frames) == 2
    assert b.wanting() == []


def test_an_ended_file_gives_the_rest_and_is_no_longer_awaited() -> None:
    b = batcher(2, 4)
    deliver(b, {0: 1, 1: 3})
    b.inputs[0].ended = True
    assert b.ready(0)
    assert took(b) == ["0.0", "1.0", "1.1", "1.2"]
    deliver(b, {1: 4})
    assert b.ready(0)


def test_the_last_batch_is_partial() -> None:
    b = batcher(2, 4)
    deliver(b, {1: 1})
    for source in b.inputs:
        source.ended = True
    assert b.ready(0)
    assert took(b) == ["1.0"]
    assert not b.ready(99)


def test_files_are_given_a_second_whatever_the_timeout() -> None:
    b = batcher(2, 2, timeout=0.04)
    deliver(b, {0: 1}, now=10.0)
    assert b.deadline() == 10.0 + FILE_PATIENCE
    assert not b.ready(10.9)
    assert b.ready(11.0)
    assert took(b, 11.0) == ["0.0"]


def test_a_dead_source_costs_one_deadline_only() -> None:
    b = batcher(2, 2)
    deliver(b, {0: 1}, now=0.0)
    assert b.ready(FILE_PATIENCE)
    b.take(FILE_PATIENCE)
    deliver(b, {0: 2}, now=2.0)
    assert b.ready(2.0)
    b.take(2.0)
    deliver(b, {1: 1}, now=3.0)  # it came back, so it is awaited again
    assert not b.ready(3.0)
    deliver(b, {0: 1}, now=3.0)
    assert b.ready(3.0)


def test_without_a_timeout_a_batch_waits_for_ever() -> None:
    b = batcher(2, 2, timeout=None)
    deliver(b, {0: 1})
    assert not b.ready(1e9)
    assert not b.ready(2e9)


def test_without_a_timeout_others_fill_the_slots_of_a_dead_source() -> None:
    b = batcher(2, 2, timeout=None)
    deliver(b, {0: 1})
    assert not b.ready(FILE_PATIENCE)
    assert b.deadline() is None
    deliver(b, {0: 1}, now=2.0)
    assert b.ready(2.0)
    assert took(b, 2.0) == ["0.0", "0.0"]


def test_live_takes_one_frame_per_source() -> None:
    b = batcher(2, 8, live=True)
    deliver(b, {0: 3, 1: 1})
    assert b.ready(0)
    assert took(b) == ["0.0", "1.0"]


def test_live_leaves_at_the_timeout() -> None:
    b = batcher(2, 2, live=True, timeout=0.04)
    deliver(b, {0: 1}, now=5.0)
    assert not b.ready(5.03)
    assert b.ready(5.04)


def test_more_sources_than_slots_take_turns() -> None:
    b = batcher(4, 1)
    deliver(b, dict.fromkeys(range(4), 2))
    assert [took(b)[0] for _ in range(8)] == ["0.0", "1.0", "2.0", "3.0", "0.1", "1.1", "2.1", "3.1"]


def test_what_a_batch_wants_is_bounded_and_makes_it_ready() -> None:
    for size in (1, 4, 7, 64):
        for sources in (1, 3, 8):
            b = batcher(sources, size)
            while wanted := b.wanting():
                b.put(wanted[0], None, 0)
            assert [len(source.frames) for source in b.inputs] == [max(1, size // sources)] * sources
            assert b.ready(0)


def test_what_an_ended_source_lacks_is_wanted_of_the_others() -> None:
    b = batcher(2, 4)
    deliver(b, {0: 1, 1: 2})
    b.inputs[0].ended = True
    assert not b.ready(0)
    assert b.wanting() == [b.inputs[1]]
    deliver(b, {1: 1})
    assert b.ready(0)
    assert b.wanting() == []
