"""Text and markdown of sections: narrow enough, and nothing leaves its cell."""

from hypothesis import given
from hypothesis import strategies as st

from polyweave_torch.layout import Section, Table, to_markdown, to_text


@given(st.lists(st.lists(st.text(max_size=200), min_size=3, max_size=3), max_size=5), st.text(max_size=300))
def test_any_text_stays_in_its_row(rows: list[list[str]], paragraph: str) -> None:
    sections = [Section(paragraph, [paragraph, [paragraph], Table(("a", "b", "c"), rows, "lll")])]
    assert max(map(len, to_text(sections).split("\n"))) <= 100
    assert len([line for line in to_markdown(sections).split("\n") if line.startswith("| ")]) == len(rows) + 2
