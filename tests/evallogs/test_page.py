"""The page: figures, tables to sort, and nothing from a file that runs, as a parser and as a browser see it."""

import base64
import re
import time
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyweave_torch.evallogs import compare_outcomes, compare_runs, read_run
from polyweave_torch.evallogs.page import Picture, to_html
from polyweave_torch.layout import Section, Table
from tests.callbacks.browser import CHROMIUM, visit
from tests.evallogs.logs import write_lines
from tests.evallogs.test_report import SCRIPT, hostile

TAGS = {
    *("html", "head", "meta", "title", "style", "script", "body", "section", "h2", "div", "figure", "img"),
    *("figcaption", "p", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"),
}


class Page(HTMLParser):
    """What a browser would make of a page: tags, attributes, and the text of each element."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: dict[str, list[str]] = {}
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, []).append(value or "")
        self.texts.append("")

    def handle_data(self, data: str) -> None:
        if self.texts:
            self.texts[-1] += data

    @property
    def scripts(self) -> list[str]:
        return [text for tag, text in zip(self.tags, self.texts, strict=True) if tag == "script"]


@pytest.mark.parametrize("scores", [False, True])
@pytest.mark.parametrize(
    "text",
    [SCRIPT, "' onclick='x()", '" onload="x()', "</style><img src=x onerror=y>", "<!--", "&lt;b&gt;", "$x$ {body}"],
)
def test_nothing_from_a_file_becomes_html(text: str, scores: bool) -> None:
    page = Page(hostile(text, runs=3, scores=scores).to_html(flips=50))
    plain = Page(hostile("plain", runs=3, scores=scores).to_html(flips=50))
    assert page.tags == plain.tags
    assert page.attributes.keys() == plain.attributes.keys()
    assert page.scripts == plain.scripts
    assert len(page.scripts) == 1
    assert f"{text}0" in page.texts
    assert all(source.startswith("data:image/svg+xml;base64,") for source in page.attributes.get("src", []))


def test_the_page_loads_nothing() -> None:
    page = re.sub(r"data:image/svg\+xml;base64,[\w+/=]+", "", hostile("plain", runs=3).to_html())
    assert not re.search(r"https?://|url\(|@import|href", page)
    assert "default-src 'none'" in page


@given(
    st.lists(st.lists(st.text(max_size=200), min_size=3, max_size=3), max_size=5),
    st.text(max_size=300),
    st.lists(st.text(max_size=300), min_size=1, max_size=3),
)
def test_any_text_stays_within_the_page(rows: list[list[str]], paragraph: str, points: list[str]) -> None:
    sections = [Section(paragraph, [paragraph, points, Table(("a", "b", "c"), rows, "lll")])]
    page = Page(to_html(sections, [Picture(paragraph, b"<svg/>")]))
    assert set(page.tags) <= TAGS
    assert page.scripts == Page(to_html([], [])).scripts


names = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(
    ["$\\frac$", "<b>", "a--><x>", "]]>", "_^{"]
)


@given(st.lists(names, min_size=1, max_size=4))
@settings(max_examples=8, deadline=None)
def test_pictures_are_shapes_whatever_a_slice_is_called(slices: list[str]) -> None:
    labels = [name for name in slices for _ in range(3)]
    outcomes = [0, 1, 1] * len(slices)
    page = Page(compare_outcomes(outcomes, outcomes[::-1], slices=labels).to_html())
    assert len(page.attributes["src"]) == 3
    for source in page.attributes["src"]:
        picture = ElementTree.fromstring(base64.b64decode(source.partition(",")[2]))
        kinds = {element.tag.partition("}")[2] for element in picture.iter()} - {
            "RDF",
            "Work",
            "title",
            "date",
            "format",
        }
        assert kinds <= {
            "svg",
            "metadata",
            "type",
            "creator",
            "Agent",
            "defs",
            "style",
            "g",
            "path",
            "use",
            "clipPath",
            "rect",
        }


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium; .ci/run installs it")
def test_a_narrow_window_breaks_no_word_of_ours(tmp_path: Path) -> None:
    names = [f"a_slice_with_a_long_name_{number}" for number in range(3)]
    before, after = [0, 1, 1, 0] * 60, [1, 0, 1, 0] * 60
    comparison = compare_outcomes(before, after, slices=[name for name in names for _ in range(80)])
    page = tmp_path / "page.html"
    page.write_text(comparison.to_html())
    table = "[...document.querySelectorAll('table')].find(one => one.tHead.textContent.includes('quadrant'))"
    # A cell that holds one word has one line of text.
    lines = f"""(() => {{
      document.body.style.width = '56rem';
      return [...{table}.rows].flatMap(row => [...row.cells].slice(1)).map(cell => {{
        const range = document.createRange();
        range.selectNodeContents(cell);
        return cell.textContent.includes(' ') ? 1 : new Set([...range.getClientRects()].map(one => one.top)).size;
      }}).join(' ');
    }})()"""
    with visit(page.as_uri(), tmp_path / "profile") as opened:

        def value(expression: str) -> object:
            return opened.call("Runtime.evaluate", expression=expression)["result"]["value"]

        while value("location.protocol + document.readyState") != "file:complete":
            time.sleep(0.1)
        assert set(str(value(lines)).split()) == {"1"}


def test_the_same_comparison_gives_the_same_page() -> None:
    assert hostile("x").to_html() == hostile("x").to_html()


def test_a_page_without_matplotlib_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    page = hostile("x").to_html()
    assert "pip install &#x27;polyweave-torch[plot]&#x27;" in page
    assert "<img" not in page


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium; .ci/run installs it")
def test_a_browser_sorts_tables_and_runs_nothing_from_a_file(tmp_path: Path) -> None:
    attacks = ["<script>document.title='ran'</script>", "<img src=x onerror=\"document.title='ran'\">", "</td></table>"]
    runs = []
    for arm in range(2):
        rows = [
            {
                "id": f"{item}{attacks[item % 3]}",
                "correct": (item + arm) % 3 == 0,
                "prediction": attacks[(item + arm) % 3],
                "slice": f"{attacks[item % 3]}{item % 5}",
                "model": attacks[0],
            }
            for item in range(60)
        ]
        runs.append(read_run(write_lines(tmp_path / f"{arm}.jsonl", rows), arm=f"model={attacks[0]}"))
    page = tmp_path / "page.html"
    page.write_text(compare_runs(runs).to_html())
    title = Page(page.read_text()).texts[Page(page.read_text()).tags.index("title")].strip()
    with visit(page.as_uri(), tmp_path / "profile") as opened:

        def value(expression: str) -> object:
            return opened.call("Runtime.evaluate", expression=expression)["result"]["value"]

        while value("location.protocol + document.readyState") != "file:complete":
            time.sleep(0.1)
        assert value("document.title") == title
        assert value("document.scripts.length") == 1
        assert value("[...document.images].filter(image => image.naturalWidth > 100).length") == 3
        assert value("document.images.length") == 3
        # Scripts that come later, as from an element that slipped in, are refused too.
        value("document.body.append(Object.assign(document.createElement('script'), {text: 'document.title=1'})), 0")
        value("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title=2\">'), 0")
        time.sleep(0.3)
        assert value("document.title") == title
        cells = "[...{table}.tBodies[0].rows].map(row => row.cells[{column}].textContent).join('|')"
        table = "[...document.querySelectorAll('table')].find(one => one.tHead.textContent.includes('p Holm'))"
        delta = cells.format(table=table, column=6)
        unsorted = str(value(delta)).split("|")
        for descending in (False, True):
            value(f"{table}.tHead.rows[0].cells[6].click(), 0")
            shown = [float(text) for text in str(value(delta)).split("|")]
            assert shown == sorted(map(float, unsorted), reverse=descending)
