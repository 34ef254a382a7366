"""The notebooks run from top to bottom, and are stored without outputs."""

import json
import os
import sys
from pathlib import Path

import nbformat
import pytest
from conftest import cython_folder
from nbclient import NotebookClient

import glmbrian

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
KERNEL = "glmbrian-tests"
#: These compile as users do: optimising their programs takes less time than it saves.
LONG_TRAINING = ["full_mnist"]

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
#: These take longest.  Tests of the how-tos, of `reproduce all --quick`, of coupled neurons and of devices do
#: the same.
EXHAUSTIVE = [
    *("devices", "existing_model", "full_mnist", "paper"),
    *("training_step_by_step", "trust", "whole_recording"),
]


def test_there_are_notebooks():
    assert "quick_start" in [path.stem for path in NOTEBOOKS]


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """Name of a Jupyter kernel that is this Python, with the package under test."""
    folder = tmp_path / "jupyter" / "kernels" / KERNEL
    folder.mkdir(parents=True)
    package_parent = str(Path(glmbrian.__file__).resolve().parents[1])
    search_path = [package_parent, *filter(None, [os.environ.get("PYTHONPATH")])]
    spec = {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": KERNEL,
        "language": "python",
        "env": {
            # not the Agg of the tests: pictures are shown as to a reader
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
            "PYTHONPATH": os.pathsep.join(search_path),
        },
    }
    (folder / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.delenv("MNIST_FOLDER", raising=False)  # with it, full_mnist trains for minutes
    return KERNEL


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.exhaustive] * (path.stem in EXHAUSTIVE))
        for path in NOTEBOOKS
    ],
)
@pytest.mark.long
@pytest.mark.compiled
def test_runs_from_top_to_bottom(path, kernel, tmp_path, request):
    if "_nwb" in path.read_text():
        pytest.importorskip("pynwb", reason="pynwb is not installed")
    if path.stem in LONG_TRAINING:
        request.getfixturevalue("users_compiler")
    notebook = nbformat.read(path, as_version=4)
    folder = tmp_path / "work"
    folder.mkdir()
    # Brian reads this file on import.
    preferences = folder / "brian_preferences"
    preferences.write_text(
        f"codegen.runtime.cython.cache_dir = {cython_folder()!r}\n"
        "devices.cpp_standalone.extra_make_args_unix = ['-j1']\n"
    )
    NotebookClient(
        notebook,
        timeout=600,
        kernel_name=kernel,
        resources={"metadata": {"path": str(folder)}},
    ).execute()  # raises where a cell does
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    # Nothing that a reader would worry about, such as warnings.
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []
    assert list(folder.iterdir()) == [preferences]


@every_notebook
def test_is_stored_clean(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.outputs == [], f"outputs in {path.name}: clear them before committing"
            assert cell.execution_count is None
    assert notebook.metadata.kernelspec.name == "python3"
