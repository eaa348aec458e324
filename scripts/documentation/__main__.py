"""``python -m scripts.documentation [PATH …]``: writes the generated pages of docs/, all or those that are named."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from scripts.documentation.pages import MAKERS, page_text
from tritonstack.paths import repository_path, write_text


def main(arguments: Sequence[str] | None = None) -> int:
    """Write what is not current, and say which; 2 where a name is none of the generated pages."""
    names = list(sys.argv[1:] if arguments is None else arguments) or list(MAKERS)
    unknown = [name for name in names if name not in MAKERS]
    if unknown:
        print(f"not generated: {', '.join(unknown)}\n  allowed: {', '.join(MAKERS)}", file=sys.stderr)
        return 2
    for name in names:
        path, text = repository_path(name), page_text(name)
        current = path.is_file() and path.read_text(encoding="utf-8") == text
        if not current:
            write_text(path, text)
        print(f"{name}: {'unchanged' if current else 'written'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
