"""The documentation's site builds without a warning, offline, and its links lead somewhere."""

import re
from html import unescape
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

ROOT = Path(__file__).parents[2]


class Page(HTMLParser):
    """Anchors of a page, and what it refers to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value is not None}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        self.loads += [given[name] for name in ("src", "href") if name in given and tag in ("script", "img", "link")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        patch.chdir(ROOT)
        config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True)
        config.plugins.on_startup(command="build", dirty=False)
        build(config)
        config.plugins.on_shutdown()
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}


def test_every_link_and_picture_is_there(site: Path, pages: dict[Path, Page]) -> None:
    broken = []
    for path, page in pages.items():
        if path.name == "404.html":
            continue
        for link in page.links + page.loads:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchor_missing = (
                parts.fragment and target in pages and unescape(unquote(parts.fragment)) not in pages[target].ids
            )
            if not target.exists() or anchor_missing:
                broken.append((str(path.relative_to(site)), link))
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(pages: dict[Path, Page]) -> None:
    assert [load for page in pages.values() for load in page.loads if urlsplit(load).scheme in ("http", "https")] == []


def test_the_reference_has_every_public_name_once(pages: dict[Path, Page]) -> None:
    rooms = ("", ".functional", ".callbacks", ".evallogs", ".plot", ".ablation", ".claims")
    names = {
        f"polyweave_torch{room}.{name}" for room in rooms for name in import_module(f"polyweave_torch{room}").__all__
    } - {"polyweave_torch.functional"}
    written = re.findall(
        r"^(?:::: |\[\]\(\)\{#)([\w.]+)\}?$",
        "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "api").glob("*.md")),
        re.MULTILINE,
    )
    # Where a module has its function's name, the anchor above stands for both.
    doubled = {f"{name}.{name.rpartition('.')[2]}" for name in written}
    written = [name for name in written if name not in doubled]
    assert sorted(written) == sorted(names)
    anchors = set().union(*(page.ids for page in pages.values()))
    assert names <= anchors


def test_docstrings_become_html(site: Path, pages: dict[Path, Page]) -> None:
    paired = (site / "api" / "paired.html").read_text(encoding="utf-8")
    assert paired.count("<math") > 20
    for path in pages:
        text = path.read_text(encoding="utf-8")
        assert "arithmatex" not in text, path
        if path.parent.name == "api":
            assert not re.search(r":(?:func|class|math|meth):|====", text), path
