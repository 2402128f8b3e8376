"""The demo's detector and tracker settings on a short clip that neither training nor the demo has seen."""

from pathlib import Path

from pipelines.evaluation import evaluate, read_events, read_truth
from tests.gstorch_cli import gstorch
from tools.scenes.make_clips import Clip, make_clip
from tools.scenes.mot import write_mot
from tools.scenes.truth import load_truth

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
SEED = 60_001  # training starts at 100,000; the detector's own tests are at 50,000, the demo's clips below 100


def test_tracks_of_an_unseen_clip(tmp_path: Path) -> None:
    clip = make_clip(Clip("short", SEED, "street", 640, 360, duration=1.0), tmp_path)
    write_mot(tmp_path / "truth", load_truth(tmp_path / "short.truth.json"))
    definition = tmp_path / "short.yaml"
    definition.write_text(
        f"pipeline: short\nsources: [{clip}]\nstages:\n"
        f"  - infer: {{model: {CONFIGS / 'models/street.onnx'}, confidence: 0.1, input_size: 640}}\n"
        f"  - track: {{config: {CONFIGS / 'trackers/two_stage.yml'}}}\n"
        f"outputs:\n  - events: {{path: {tmp_path / 'short.jsonl'}}}\n"
    )
    assert gstorch("run", definition, "-q").code == 0
    tracks = evaluate(read_truth(tmp_path / "truth"), read_events(tmp_path / "short.jsonl")).tracks
    assert tracks is not None
    assert tracks.total.hota >= 0.60, tracks.total
