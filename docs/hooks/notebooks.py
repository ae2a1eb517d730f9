"""Executes the notebooks when the site is built, and makes a page of each.

Notebooks are kept without outputs, so every number and picture on their pages is of this build. Pages are
plain Markdown, since the usual templates for notebooks load scripts from elsewhere.
"""

from __future__ import annotations

import base64
import os
from pathlib import Path

from mkdocs.structure.files import File

FOLDER = "notebooks"


def on_files(files, config):
    """Add a page for each notebook, and the pictures it draws."""
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    for path in sorted((Path(config.docs_dir) / FOLDER).glob("*.ipynb")):
        text, pictures = page_of(executed(path), path.stem)
        files.append(File.generated(config, f"{FOLDER}/{path.stem}.md", content=text))
        for name, picture in pictures.items():
            files.append(File.generated(config, f"{FOLDER}/{name}", content=picture))
    return files


def executed(path: Path):
    """The notebook with its outputs; a cell that fails ends the build."""
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    return notebook


def page_of(notebook, stem: str) -> tuple[str, dict[str, bytes]]:
    """A notebook as Markdown, and its pictures by name."""
    parts, pictures = [], {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```py\n{cell.source}\n```")
        for output in cell.outputs:
            data = output.get("data", {})
            if output.output_type == "stream":
                parts.append(f"```text\n{output.text.rstrip()}\n```")
            elif "image/png" in data:
                name = f"{stem}-{len(pictures)}.png"
                pictures[name] = base64.b64decode(data["image/png"])
                parts.append(f"![Output of the code above]({name})")
            elif "<table" in (table := data.get("text/html", "")):
                parts.append(
                    table[table.index("<table") : table.index("</table>") + len("</table>")]
                )
            elif "text/plain" in data:
                parts.append(f"```text\n{data['text/plain'].rstrip()}\n```")
    parts.insert(1, f"*This page is an executed notebook: [download it]({stem}.ipynb).*")
    return "\n\n".join(parts) + "\n", pictures
