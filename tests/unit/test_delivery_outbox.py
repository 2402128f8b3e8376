"""The outbox: order, counters that add up, limits, and files that cannot be used."""

from __future__ import annotations

import multiprocessing
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from pipelines.delivery.backlog import Backlog
from pipelines.delivery.outbox import Limits, Outbox
from pipelines.delivery.store import Message, OutboxError, open_store
from pipelines.delivery.upkeep import expire, keep_up, open_for_upkeep
from tests.waiting import LIMIT_S, wait_for


def numbered(numbers: range, key: str = "door", size: int = 0) -> list[Message]:
    return [Message(key, "topic", b"%d" % n + b" " * size) for n in numbers]


def rows(path: Path) -> list[int]:
    connection = sqlite3.connect(path)
    found = [int(payload) for (payload,) in connection.execute("SELECT payload FROM messages ORDER BY id")]
    connection.close()
    return found


def check_sum(outbox: Outbox) -> None:
    counters = outbox.counters()
    assert counters.queued == len(rows(outbox.path))
    assert counters.made == counters.delivered + counters.queued + sum(counters.dropped.values())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "outbox.db"


def test_messages_come_out_in_order_with_ids_of_their_own(path):
    outbox = Outbox(path, clock=lambda: 1000.5)
    outbox.put(numbered(range(3)))
    outbox.put(numbered(range(3, 1203)))
    backlog = Backlog(path)
    batch = backlog.read()
    assert [int(m.payload) for m in batch] == list(range(1203))
    assert len({m.id for m in batch}) == 1203
    assert (batch[0].key, batch[0].topic, batch[0].made, batch[0].number) == ("door", "topic", 1000.5, 1)
    assert [m.id for m in backlog.read(5)] == [m.id for m in batch[:5]]
    backlog.close()
    outbox.close()


def test_what_is_settled_is_gone_and_counted(path):
    outbox, backlog = Outbox(path), Backlog(path)
    outbox.put(numbered(range(10)))
    batch = backlog.read()
    backlog.settle(batch, {m.number for m in batch[:6]}, {batch[6].number})
    counters = outbox.counters()
    assert (counters.made, counters.delivered, counters.queued, counters.dropped["refused"]) == (10, 6, 3, 1)
    check_sum(outbox)
    again = backlog.read()
    assert [m.id for m in again] == [m.id for m in batch[7:]]
    backlog.settle(again, {m.number for m in again})
    assert outbox.counters().queued == 0
    assert backlog.is_empty()
    backlog.close()
    outbox.close()


def test_a_restart_goes_on_where_it_was(path):
    outbox = Outbox(path)
    outbox.put(numbered(range(5)))
    outbox.close()
    outbox = Outbox(path)
    outbox.put(numbered(range(5, 8)))
    assert rows(path) == list(range(8))
    assert outbox.counters().made == 8
    outbox.close()


def _put_and_wait(path: Path, ready: multiprocessing.synchronize.Event) -> None:
    outbox = Outbox(path)
    outbox.put(numbered(range(7)))
    ready.set()
    time.sleep(60)


def test_what_was_put_survives_sigkill(path):
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=_put_and_wait, args=(path, ready))
    process.start()
    assert ready.wait(LIMIT_S)
    process.kill()
    process.join()
    assert rows(path) == list(range(7))
    Outbox(path).close()  # and its lock is gone with it


@pytest.mark.parametrize(("when_full", "kept"), [("drop-oldest", "newest"), ("drop-newest", "oldest")])
def test_a_full_outbox_drops_and_counts(path, when_full, kept):
    outbox = Outbox(path, Limits(max_bytes=400_000, when_full=when_full))
    for start in range(0, 2000, 10):
        outbox.put(numbered(range(start, start + 10), size=990))
    left = rows(path)
    assert (max(left) == 1999) == (kept == "newest")
    assert (min(left) == 0) == (kept == "oldest")
    assert 250 < len(left) < 400  # of 1 kB in 400 kB, three to a page
    outbox.flush()
    counters = outbox.counters()
    assert counters.made == 2000
    assert counters.dropped[when_full.removeprefix("drop-")] == 2000 - len(left)
    check_sum(outbox)
    outbox.close()


def test_the_last_room_on_the_disk_is_not_taken(path, monkeypatch):
    outbox = Outbox(path)
    outbox.put(numbered(range(100), size=990))
    monkeypatch.setattr("pipelines.delivery.outbox.RESERVE_BYTES", 1 << 60)
    for start in range(100, 200, 10):
        outbox.put(numbered(range(start, start + 10), size=990))
    left = rows(path)
    assert max(left) == 199
    assert 50 <= len(left) <= 110  # it lives in the room that it has
    assert outbox.counters().dropped["oldest"] == 200 - len(left)
    check_sum(outbox)
    outbox.close()


def test_a_message_that_is_dropped_while_it_is_sent_counts_once(path):
    outbox, backlog = Outbox(path, Limits(max_bytes=60_000)), Backlog(path)
    outbox.put(numbered(range(10), size=990))
    batch = backlog.read()
    for start in range(10, 100, 10):
        outbox.put(numbered(range(start, start + 10), size=990))
    backlog.settle(batch, {m.number for m in batch})
    assert outbox.counters().dropped["oldest"] > 0
    check_sum(outbox)
    backlog.close()
    outbox.close()


def test_old_messages_expire(path):
    now = 100.0
    outbox = Outbox(path, clock=lambda: now)
    outbox.put(numbered(range(4)))
    now = 200.0
    outbox.put(numbered(range(4, 6)))
    connection = open_store(path)
    expire(connection, before=150.0)
    connection.close()
    assert rows(path) == [4, 5]
    assert outbox.counters().dropped["expired"] == 4
    check_sum(outbox)
    outbox.close()


def test_upkeep_syncs_and_gives_room_back(path, monkeypatch):
    monkeypatch.setattr("pipelines.delivery.upkeep.LOOK_EVERY_S", 0.02)
    monkeypatch.setattr("pipelines.delivery.upkeep.SYNC_EVERY_S", 0.02)
    outbox, backlog = Outbox(path), Backlog(path)
    outbox.put(numbered(range(2000), size=1000))
    stop = threading.Event()
    upkeep = threading.Thread(target=keep_up, args=(open_for_upkeep(path), path, None, stop))
    upkeep.start()
    wait_for(lambda: path.stat().st_size > 2_000_000)
    batch = backlog.read()
    backlog.settle(batch, {m.number for m in batch})
    wait_for(lambda: path.stat().st_size < 100_000)
    stop.set()
    upkeep.join()
    backlog.close()
    outbox.close()


def test_an_outbox_that_is_deleted_in_mid_run_is_named(path, monkeypatch, caplog):
    monkeypatch.setattr("pipelines.delivery.upkeep.LOOK_EVERY_S", 0.01)
    outbox = Outbox(path)
    upkeep = threading.Thread(target=keep_up, args=(open_for_upkeep(path), path, None, threading.Event()))
    upkeep.start()
    for file in path.parent.glob("outbox.db*"):
        file.unlink()
    outbox.put(numbered(range(3)))
    upkeep.join(LIMIT_S)
    assert not upkeep.is_alive()
    assert f"outbox '{path}' was deleted while it was in use" in caplog.text
    outbox.close()


# --- files that cannot be used ----------------------------------------------------------------------------------------


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutboxError, match=r"cannot write the outbox '.*/file/outbox.db'.*; make its folder writable"):
        Outbox(tmp_path / "file" / "outbox.db")


def test_a_file_that_is_no_outbox(path):
    path.parent.mkdir()
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(OutboxError, match=r"outbox\.db': .*not a database: the file is damaged; move it away"):
        Outbox(path)
    path.unlink()
    sqlite3.connect(path).executescript("CREATE TABLE other (x)").connection.close()
    with pytest.raises(OutboxError, match="is a database but no outbox of this version"):
        Outbox(path)


def test_a_file_that_somebody_else_has_locked(path, monkeypatch):
    monkeypatch.setattr("pipelines.delivery.store.PATIENCE_S", 0.05)
    Outbox(path).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(
        OutboxError, match="database is locked: another process holds it locked; end what else has it open"
    ):
        Outbox(path)
    other.close()
    Outbox(path).close()


def test_a_file_that_is_damaged_behind_its_first_page(path):
    Outbox(path).close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))  # all but the first page
    with pytest.raises(OutboxError, match="the file is damaged; move it away"):
        Outbox(path)


def test_a_second_pipeline_is_refused_by_the_firsts_process_id(path):
    import os

    first = Outbox(path)
    with pytest.raises(OutboxError, match=f"in use by another pipeline \\(process {os.getpid()}\\)"):
        Outbox(path)
    first.close()
    Outbox(path).close()


def test_a_lock_held_by_somebody_else_keeps_messages_in_memory_until_it_is_gone(path):
    outbox = Outbox(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    started = time.monotonic()
    outbox.put(numbered(range(3)))
    assert time.monotonic() - started < 4  # SQLite by itself would wait 5 s
    assert rows(path) == []
    other.execute("ROLLBACK")
    other.close()
    outbox.put(numbered(range(3, 4)))
    outbox.flush()
    assert rows(path) == [0, 1, 2, 3]
    assert outbox.error is None
    outbox.close()


def test_a_full_disk_is_named_and_what_does_not_fit_in_memory_is_counted(path, monkeypatch):
    monkeypatch.setattr("pipelines.delivery.outbox.HELD_BYTES", 100_000)
    monkeypatch.setattr("pipelines.delivery.outbox.PATIENCE_S", 0.0)
    monkeypatch.setattr("pipelines.delivery.outbox.RETRY_S", 0.0)
    outbox = Outbox(path)
    (pages,) = outbox._connection.execute("PRAGMA page_count").fetchone()
    outbox._connection.execute(f"PRAGMA max_page_count = {pages}")  # SQLite then says what it says on a full disk
    for start in range(0, 1000, 10):
        outbox.put(numbered(range(start, start + 10), size=990))
    assert "the disk is full; make room" in str(outbox.error)
    lost = outbox.counters().dropped["unwritten"]
    assert 850 < lost < 930

    outbox._connection.execute(f"PRAGMA max_page_count = {pages + 10_000}")
    outbox.put(numbered(range(1000, 1010)))
    assert outbox.error is None
    assert rows(path) == list(range(lost, 1010))
    check_sum(outbox)
    assert outbox.counters().made == 1010
    outbox.close()
