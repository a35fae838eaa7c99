# SPDX-License-Identifier: Apache-2.0
"""The notebook of the examples runs from its first cell to its last."""

import pytest
from places import ROOT

NOTEBOOK = ROOT / "examples" / "first_steps.ipynb"


@pytest.mark.slow
def test_the_notebook_runs(tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    import nbformat

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    [last] = [cell for cell in notebook.cells if cell.cell_type == "code"][-1].outputs
    assert last.data["text/plain"] == "array([0. , 0.5, 1. , 1.5], dtype=float32)"
