"""What ``make demo`` says while its clips are made."""

from pathlib import Path

from tools.demo import what_is_made
from tools.scenes import make_clips
from tools.scenes.make_clips import CLIPS, missing_clips


def test_clips_that_are_to_be_made_are_named(tmp_path: Path) -> None:
    assert what_is_made(missing_clips(tmp_path)) == (
        "Making street (15 s of 1280x720) and alley (15 s of 720x1280), once; about a minute on two cores ..."
    )


def test_clips_that_are_there_are_not(tmp_path: Path, monkeypatch) -> None:
    street, alley = CLIPS
    for clip in CLIPS:
        for file in make_clips._files(clip, tmp_path):
            file.write_text(make_clips._recipe(clip))
    assert missing_clips(tmp_path) == []
    (tmp_path / "alley.truth.json").unlink()
    assert missing_clips(tmp_path) == [alley]
    monkeypatch.setattr(make_clips, "RECIPE_VERSION", 2)
    assert missing_clips(tmp_path) == [street, alley]
