"""Make the JavaScript reader that is shipped, src/recollect/ui/static/mementomap.js, of its source: make reader.

Comments, indentation and line ends are left out, so that a page loads less than 30 kB. A comment stands on lines of its own, or
after two blanks at the end of a line.
"""

from __future__ import annotations

import re
from pathlib import Path

UI = Path(__file__).resolve().parents[1] / "src" / "recollect" / "ui"
SOURCE, MADE = UI / "reader" / "mementomap.js", UI / "static" / "mementomap.js"
BANNER = "// The MementoMap reader of Recollect; MIT licence\n"


def made() -> str:
    """The text of the shipped file."""
    lines = (re.sub(r"  // .*", "", line).strip() for line in SOURCE.read_text(encoding="utf-8").splitlines())
    kept = (line for line in lines if line and not line.startswith(("//", "/**")))
    return BANNER + "".join(line if line.endswith((";", "{", ",", "(", "[")) else f"{line}\n" for line in kept)


if __name__ == "__main__":
    MADE.write_text(made(), encoding="utf-8")
    print(f"{MADE.name}: {MADE.stat().st_size:,} bytes")
