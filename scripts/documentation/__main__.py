"""``python -m scripts.documentation``: writes the generated pages of docs/."""

from __future__ import annotations

from scripts.documentation.pages import MAKERS
from tritonstack.paths import repository_path, write_text


def main() -> None:
    """Write what is not current, and print which."""
    for name, maker in MAKERS.items():
        path, text = repository_path(name), maker()
        current = path.is_file() and path.read_text(encoding="utf-8") == text
        if not current:
            write_text(path, text)
        print(f"{name}: {'unchanged' if current else 'written'}")


if __name__ == "__main__":
    main()
