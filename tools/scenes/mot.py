"""The truth of a clip in the format of the MOT challenges, for `gstorch eval` and other evaluation programs."""

from pathlib import Path

from tools.scenes.truth import Truth


def write_mot(folder: Path, truth: Truth) -> Path:
    """Writes `gt/gt.txt`, `gt/labels.txt` and `seqinfo.ini` into a folder of the clip's name in `folder`.

    Columns of `gt.txt`: frame from 1, track, left, top, width, height, 1 or 0 (need not be found), class from 1 (line
    of `labels.txt`), visibility.

    Returns:
        The clip's folder.
    """
    sequence = folder / Path(truth.source).stem
    (sequence / "gt").mkdir(parents=True, exist_ok=True)
    info = {
        "name": sequence.name,
        "frameRate": f"{truth.fps:g}",
        "seqLength": len(truth.frames),
        "imWidth": truth.width,
        "imHeight": truth.height,
    }
    ini = "\n".join(["[Sequence]", *(f"{key}={value}" for key, value in info.items())])
    (sequence / "seqinfo.ini").write_text(ini + "\n", encoding="utf-8")
    (sequence / "gt" / "labels.txt").write_text("\n".join(truth.classes) + "\n", encoding="utf-8")
    lines = []
    for number, objects in enumerate(truth.frames, start=1):
        for item in objects:
            x1, y1, x2, y2 = item.box
            class_number = truth.classes.index(item.label) + 1
            box = (x1, y1, x2 - x1, y2 - y1)
            columns = (number, item.track_id, *box, int(not item.ignore), class_number, item.visibility)
            lines.append(",".join(f"{value}" for value in columns))
    (sequence / "gt" / "gt.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return sequence
