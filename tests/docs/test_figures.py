"""Every script in docs/figures draws what docs/images holds: a readable PNG, the same each time."""

from pathlib import Path

import matplotlib.image
import pytest

from tests.scripts import load_script

DOCS = Path(__file__).parents[2] / "docs"
SCRIPTS = sorted((DOCS / "figures").glob("[!_]*.py"))
# What a page of text shows without scrolling or shrinking, and loads at once.
WIDTH, HEIGHT, BYTES = (400, 1250), (200, 1250), 150_000


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_draws_its_figures(script: Path, tmp_path: Path) -> None:
    module = load_script(script)
    runs = [tmp_path / "first", tmp_path / "second"]
    for folder in runs:
        folder.mkdir()
        module.main(folder)
    drawn = sorted(file.name for file in runs[0].iterdir())
    assert drawn
    assert all(name.startswith(script.stem) and name.endswith(".png") for name in drawn)
    for name in drawn:
        first, second = (folder / name for folder in runs)
        assert first.read_bytes() == second.read_bytes()
        assert first.stat().st_size < BYTES
        image = matplotlib.image.imread(first)
        height, width = image.shape[:2]
        assert WIDTH[0] <= width <= WIDTH[1]
        assert HEIGHT[0] <= height <= HEIGHT[1]
        # Not blank: an empty axis leaves hardly a pixel that is not white.
        assert (image[..., :3] < 0.9).any(-1).mean() > 0.01
        # Fonts differ between machines by a pixel or two, so the page's copy is held to its size.
        kept = matplotlib.image.imread(DOCS / "images" / name)
        assert kept.shape[:2] == pytest.approx((height, width), abs=4)


def test_every_image_has_its_script() -> None:
    stems = [script.stem for script in SCRIPTS]
    orphans = [
        image.name
        for image in (DOCS / "images").glob("*.png")
        if not any(image.stem == stem or image.stem.startswith(f"{stem}_") for stem in stems)
    ]
    assert not orphans


def test_the_page_of_performance_shows_the_kept_results() -> None:
    script = load_script(DOCS / "figures" / "performance.py")
    page = script.PAGE.read_text(encoding="utf-8")
    assert script.table() in page
    assert len(script.workloads()) > 40
    missed = [goal["goal"] for work in script.workloads() for goal in work["goals"] if not goal["met"]]
    assert page.count("**missed: ") == len(missed)
