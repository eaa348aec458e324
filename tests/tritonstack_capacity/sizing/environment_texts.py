"""Environment files as people may write them, for tests: any style, order, comments and line ends."""

from __future__ import annotations

from hypothesis import strategies as st

OWN_KEYS = ("scaling", "minimum", "maximum", "requests_per_second", "safety_factor", "invocations_per_instance")
"""What an edit may touch: lines with none of these words stay as they are."""
HEAD = {"account": '"123456789012"', "region": "us-east-1", "production": "false", "tags": "{team: 'a = b: -'}"}


@st.composite
def environment_texts(draw: st.DrawFn) -> str:
    """A valid file for the environment ``dev``, whose endpoints are called ``e0``, ``e1``, …"""
    writer = _Writer(draw)
    count = draw(st.integers(1, 3))
    parts = [*HEAD.items(), ("endpoints", None)]
    writer.line("environment: dev")
    for key, value in draw(st.permutations(parts)):
        if value is not None:
            writer.line(f"{key}: {value}")
            continue
        writer.line("endpoints:")
        indent = draw(st.sampled_from((0, 2, 4)))
        for number in range(count):
            writer.endpoint(f"e{number}", indent=indent)
    text = "\n".join([*writer.lines, *draw(st.sampled_from(([], [""], ["", ""])))])
    return text.replace("\n", draw(st.sampled_from(("\n", "\r\n"))))


class _Writer:
    """Writes lines, with comments and empty lines strewn in."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.comments = 0

    def line(self, text: str, *, indent: int = 0) -> None:
        if self.draw(st.integers(0, 5)) == 0:
            self.lines.append(self.draw(st.sampled_from(("", "   ", f"{' ' * indent}{self.comment()}"))))
        after = self.draw(st.sampled_from(("", "", "", "  ", "    # ", " # é {}: ")))
        after += self.comment() if "#" in after else ""
        self.lines.append(f"{' ' * indent}{text}{after}")

    def comment(self) -> str:
        self.comments += 1
        return f"# comment {self.comments}: [x"

    def endpoint(self, name: str, *, indent: int) -> None:
        fields = {
            "name": name,
            "mode": "multi-model",
            "release": self.draw(st.sampled_from(('"24.09"', "'24.09'"))),
            "instance_type": self.draw(st.sampled_from(("ml.g4dn.xlarge", '"ml.g4dn.xlarge"', "'ml.g4dn.xlarge'"))),
            "models": self.draw(st.sampled_from(("[a, b]", "[\n        a,\n        b ]", '["a"]'))),
            "timeouts": "{model_download_seconds: 600}",
        }
        if self.draw(st.booleans()):
            fields["initial_instance_count"] = "4"
        scaling = self.draw(st.sampled_from(("none", "null", "empty", "flow", "flow", "block", "block")))
        if scaling != "none":
            fields["scaling"] = scaling
        keys = self.draw(st.permutations(tuple(fields)))
        if scaling not in ("block", "empty") and self.draw(st.integers(0, 3)) == 0:
            self.line(f"{' ' * indent}- {{{', '.join(self.pair(key, fields[key]) for key in keys)}}}")
            return
        dash = self.draw(st.sampled_from(("- ", "-   ")))
        for number, key in enumerate(keys):
            start = dash if number == 0 else " " * len(dash)
            if key == "scaling" and scaling == "block":
                self.line(f"{' ' * indent}{start}scaling:")
                for field, value in self.scaling():
                    self.line(f"{field}: {value}", indent=indent + len(dash) + 3)
            else:
                self.line(f"{' ' * indent}{start}{self.pair(key, fields[key])}")

    def pair(self, key: str, value: str) -> str:
        if key != "scaling":
            return f"{key}: {value}"
        if value == "flow":
            space = self.draw(st.sampled_from(("", " ")))
            gap = self.draw(st.sampled_from((", ", ",", ",\n            ")))
            return f"scaling: {{{space}{gap.join(': '.join(each) for each in self.scaling())}{space}}}"
        return "scaling:" if value == "empty" else "scaling: null"

    def scaling(self) -> list[tuple[str, str]]:
        fields = {"minimum": self.draw(st.sampled_from(("2", "1", "4"))), "maximum": "9", "gpu_utilization": "70"}
        form = self.draw(st.sampled_from(("none", "rate", "rate", "factor", "target", "null")))
        if form in ("rate", "factor"):
            fields["requests_per_second"] = "1.50"
        if form == "factor":
            fields["safety_factor"] = "0.70"
        if form == "target":
            fields["invocations_per_instance"] = "3000"
        if form == "null":
            fields["requests_per_second"] = "null"
        return [(key, fields[key]) for key in self.draw(st.permutations(tuple(fields)))]
