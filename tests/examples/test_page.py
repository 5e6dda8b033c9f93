"""docs/examples.md has every example, and examples are short."""

from pathlib import Path

import pytest

from tests.examples.running import PAGE, SCRIPTS, section


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_an_example_is_short_and_has_a_section_on_the_page(script: Path) -> None:
    assert len(script.read_text().splitlines()) < 80
    assert "For your own data:" in section(script.stem)
    heading = section(script.stem).splitlines()[0].lower().replace(" ", "-")
    assert f"[`{script.name}`](#{heading})" in PAGE.read_text()
