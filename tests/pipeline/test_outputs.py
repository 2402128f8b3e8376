"""Outputs that cannot be written, or not to the end; standard output; folders that are missing."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from elements.base import ElementError
from pipelines.definition import Definition, definition_from_mapping
from pipelines.outputs import OutputError, prepare_outputs
from pipelines.plan import make_plan, open_runner
from tests.clips import make_clip
from tests.gstorch_cli import command, count_frames, environment, events, gstorch, line_count
from tests.waiting import LIMIT_S

FRAMES = 12
MODEL = "tests.own_models:Good"


@pytest.fixture(scope="module")
def clip(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("clip") / "clip.mp4"
    make_clip(path, 160, 120, FRAMES)
    return path


def definition(folder: Path, clip: Path, *outputs: dict) -> Definition:
    data = {"pipeline": "test", "sources": [str(clip)], "stages": [{"infer": {"model": MODEL}}], "outputs": outputs}
    return definition_from_mapping(data, folder)


def video(path: Path | str) -> dict:
    return {"file": {"path": str(path)}}


def event_file(path: Path | str) -> dict:
    return {"events": {"path": str(path)}}


# --- before the start -------------------------------------------------------------------------------------------------


def test_missing_folders_are_made_and_files_replaced(tmp_path, clip):
    (tmp_path / "old.jsonl").write_text("old\n" * 1000)
    runner = open_runner(make_plan(definition(tmp_path, clip, video("a/b/out.mp4"), event_file("old.jsonl"))))
    runner.run()
    assert (runner.exit_code(), runner.outcome.error) == (0, "")
    assert count_frames(tmp_path / "a/b/out.mp4") == FRAMES
    assert len(events(tmp_path / "old.jsonl")) == FRAMES


def test_every_output_that_cannot_be_written_is_named(tmp_path, clip):
    (tmp_path / "file").touch()
    (tmp_path / "folder.mp4").mkdir()
    (tmp_path / "folder.jsonl").mkdir()
    outputs = [video("file/out.mp4"), video("folder.mp4"), event_file("folder.jsonl"), event_file("/proc/no/e.jsonl")]
    with pytest.raises(OutputError) as raised:
        prepare_outputs(definition(tmp_path, clip, *outputs))
    assert str(raised.value).splitlines() == [
        f"outputs[0].file.path: cannot write '{tmp_path}/file/out.mp4': '{tmp_path}/file' is a file, not a folder",
        f"outputs[1].file.path: cannot write '{tmp_path}/folder.mp4': it is a folder",
        f"outputs[2].events.path: cannot write '{tmp_path}/folder.jsonl': it is a folder",
        "outputs[3].events.path: cannot write '/proc/no/e.jsonl': the folder '/proc/no' cannot be made: "
        "No such file or directory",
    ]


def test_a_file_for_messages_that_cannot_be_written_is_named(tmp_path, clip):
    (tmp_path / "file").touch()
    stages = [{"message": {"broker": "file", "connection": "file/m.jsonl", "schema": "events"}}]
    data = {"pipeline": "test", "sources": [str(clip)], "stages": stages}
    with pytest.raises(OutputError) as raised:
        prepare_outputs(definition_from_mapping(data, tmp_path))
    reason = f"'{tmp_path}/file' is a file, not a folder"
    path = f"{tmp_path}/file/m.jsonl"
    assert str(raised.value) == f"stages[0].message.connection: cannot write '{path}': {reason}"


def test_a_folder_without_permission(tmp_path, clip):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    arguments = command("run", clip, "-m", MODEL, "-e", locked / "e.jsonl")
    if os.geteuid() == 0:  # root may write anywhere, with this capability
        arguments = ["setpriv", "--bounding-set", "-dac_override", *arguments]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=LIMIT_S, env=environment(), check=False)
    assert done.returncode == 1
    assert f"no permission to write {locked}" in done.stderr


def test_an_event_file_that_does_not_open(pyservicemaker):
    from pipelines.operators.events import EventWriter  # derives from pyservicemaker's operator

    with pytest.raises(ElementError, match=r"cannot write the event file '/proc/e\.jsonl': No such file or directory"):
        EventWriter("/proc/e.jsonl", "test", ["a"], True, lambda text, trace: None)


def test_the_program_tells_and_ends_with_1(tmp_path, clip):
    result = gstorch("run", clip, "-m", MODEL, "-o", "out.avi", "-e", "e.jsonl", cwd=tmp_path)
    assert (result.code, result.stderr.count("\n")) == (2, 1)
    assert "--output: outputs[0].file.path: 'out.avi' does not end in .mp4" in result.stderr
    (tmp_path / "out.mp4").mkdir()
    result = gstorch("run", clip, "-m", MODEL, "-o", "out.mp4", "-e", "e.jsonl", cwd=tmp_path)
    assert result.code == 1
    assert result.stderr == f"error: outputs[0].file.path: cannot write '{tmp_path}/out.mp4': it is a folder\n"
    assert not (tmp_path / "e.jsonl").exists()


# --- while running ----------------------------------------------------------------------------------------------------


def test_a_full_disk_under_the_event_file(tmp_path, clip):
    runner = open_runner(make_plan(definition(tmp_path, clip, event_file("/dev/full"))))
    runner.run()
    assert runner.exit_code() == 1
    assert runner.outcome.error == "cannot write the event file '/dev/full': No space left on device"
    assert runner.outcome.trace == ""


def test_a_full_disk_under_the_video(tmp_path, clip):
    (tmp_path / "out.mp4").symlink_to("/dev/full")
    runner = open_runner(make_plan(definition(tmp_path, clip, video("out.mp4"))))
    runner.run()
    assert runner.exit_code() == 1
    assert runner.outcome.error.startswith(f"'{tmp_path}/out.mp4': No space left on the resource")


# --- standard output --------------------------------------------------------------------------------------------------


def test_events_and_summary_on_standard_output(clip):
    result = gstorch("run", clip, "-m", MODEL, "-e", "-", "--json")
    assert result.code == 0, result.stderr
    *lines, summary = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["frame"] for line in lines] == list(range(FRAMES))
    assert summary["frames"] == FRAMES
    assert summary["exit_code"] == 0


def test_a_reader_that_goes_away(clip):
    arguments = command("run", clip, "-m", MODEL, "-e", "-", "--set", "sources.0.loop=true")
    process = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), bufsize=1
    )
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["frame"] == 0
    process.stdout.close()
    assert process.stderr is not None
    told = process.stderr.read()
    assert process.wait(LIMIT_S) == 1
    assert "error: cannot write events to standard output: Broken pipe\n" in told
    assert "Traceback" not in told


def test_a_summary_that_cannot_be_written(tmp_path, clip):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command("run", clip, "-m", MODEL, "-e", tmp_path / "e.jsonl", "--json", "-q"),
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S, env=environment(), check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "error: cannot write to standard output: No space left on device\n")
    assert line_count(tmp_path / "e.jsonl") == FRAMES
