"""The documents name files that exist, and the map knows every folder."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTS = [
    "README.md",
    "CHANGELOG.md",
    "DESIGN.md",
    "CONTRIBUTING.md",
    *(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/**/*.md")),
]


def test_the_map_is_in_step_with_the_folders() -> None:
    subprocess.run([sys.executable, str(ROOT / "scripts/design-map"), "--check"], check=True)


def test_every_path_in_the_design_exists() -> None:
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z0-9_]+\.py)`", (ROOT / "DESIGN.md").read_text()))
    assert named
    missing = [path for path in named if not (ROOT / "src/moldau" / path).exists() and not (ROOT / path).exists()]
    assert missing == []


def test_links_between_documents_lead_somewhere() -> None:
    broken = []
    for document in DOCUMENTS:
        folder = (ROOT / document).parent
        for target in re.findall(r"\]\(([^)#]+)\)", (ROOT / document).read_text()):
            if not target.startswith("http") and not (folder / target).exists():
                broken.append(f"{document}: {target}")
    assert broken == []
