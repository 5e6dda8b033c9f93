"""The head of the page that `polyweave-torch compare --html` writes, as Chromium shows it.

MMLU asked without examples and with five (tests/data/evallogs/lm_eval/mmlu_0shot_vs_5shot). Without Chromium the
picture that was kept is taken.

Run: python docs/figures/compare_page.py
"""

import shutil
import subprocess
import tempfile
from pathlib import Path

from polyweave_torch.evallogs import compare_runs, read_run

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "docs" / "images"
LOGS = ROOT / "tests/data/evallogs/lm_eval/mmlu_0shot_vs_5shot"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --window-size=1000,1150"
)


def main(folder: Path = KEPT) -> None:
    """Write ``compare_page.png``."""
    if CHROMIUM is None:
        if folder.resolve() != KEPT.resolve():
            shutil.copy(KEPT / "compare_page.png", folder)
        return
    comparison = compare_runs([read_run(LOGS / arm) for arm in ("before", "after")])
    with tempfile.TemporaryDirectory() as scratch:
        page = Path(scratch) / "page.html"
        page.write_text(comparison.to_html(), encoding="utf-8")
        picture = (folder / "compare_page.png").resolve()
        where = [f"--user-data-dir={scratch}/profile", f"--screenshot={picture}", page.as_uri()]
        subprocess.run([CHROMIUM, *FLAGS.split(), *where], check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    main()
