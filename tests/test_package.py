"""The distributions: what is in them, and what they need."""

import importlib.metadata
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An sdist, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    return next(dist.glob("*.whl"))


def test_both_distributions_pass_twine(dist: Path) -> None:
    files = sorted(str(file) for file in dist.iterdir())
    assert [Path(file).name for file in files] == [
        "polyweave_torch-0.1.0-py3-none-any.whl",
        "polyweave_torch-0.1.0.tar.gz",
    ]
    check = [sys.executable, "-m", "twine", "check", "--strict", *files]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_module_is_in_the_wheel_once(wheel: Path) -> None:
    packed = [name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name]
    assert len(packed) == len(set(packed))
    sources = {
        f"polyweave_torch/{path.relative_to(ROOT / 'polyweave_torch')}" for path in _files(ROOT / "polyweave_torch")
    }
    sources |= {f"polyweave_torch/callbacks/{path.name}" for path in _files(ROOT / "callbacks")}
    assert set(packed) == sources | {"polyweave_torch/py.typed"}


def _files(folder: Path) -> list[Path]:
    # rglob does not follow the link to callbacks/ on every Python version; these are listed on their own.
    return [path for path in folder.rglob("*.py") if "callbacks" not in path.relative_to(folder).parts]


def _core_closure() -> set[str]:
    """The core dependencies and what they need, as installed here."""
    todo, names = ["torch", "torchmetrics", "numpy", "scipy"], set()
    while todo:
        name = re.sub(r"[-_.]+", "-", todo.pop()).lower()
        if name in names:
            continue
        try:
            requires = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # a dependency for another platform
        names.add(name)
        todo += [re.split(r"[^\w.-]", line)[0] for line in requires if "extra ==" not in line]
    return names


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and links to the core dependencies alone: what a plain install would have."""
    site = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(site)
    for name in _core_closure():
        files = importlib.metadata.distribution(name).files or []
        tops = {Path(str(file)).parts[0] for file in files if not str(file).startswith("..")}
        for top in tops - {"__pycache__"}:
            source = Path(str(importlib.metadata.distribution(name).locate_file(top)))
            if source.exists() and not (site / top).exists():
                (site / top).symlink_to(source)
    return site


def _run(site: Path, code: str) -> subprocess.CompletedProcess[str]:
    program = f"import sys; sys.path.insert(0, {str(site)!r})\n{code}"
    return subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)


def test_the_wheel_imports_with_core_dependencies_alone(bare: Path) -> None:
    code = (
        "import polyweave_torch, polyweave_torch.functional\n"
        "assert not {'lightning', 'pytorch_lightning', 'matplotlib', 'sklearn', 'triton'} & set(sys.modules)\n"
        "import importlib.util\n"
        "assert importlib.util.find_spec('lightning') is None and importlib.util.find_spec('matplotlib') is None\n"
        "print(polyweave_torch.__file__)"
    )
    done = _run(bare, code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(bare))


@pytest.mark.parametrize(("module", "extra"), [("callbacks", "lightning"), ("plot", "plot")])
def test_a_missing_extra_is_named(bare: Path, module: str, extra: str) -> None:
    done = _run(bare, f"import polyweave_torch.{module}")
    assert done.returncode != 0
    assert f"pip install 'polyweave-torch[{extra}]'" in done.stderr.strip().split("\n")[-1]


def test_the_command_names_the_demos_extra(bare: Path) -> None:
    done = _run(bare, "from polyweave_torch.cli import main; sys.exit(main(['demo']))")
    assert done.returncode == 2
    assert "pip install 'polyweave-torch[demo]'" in done.stderr
