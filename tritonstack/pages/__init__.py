"""Self-contained HTML pages with charts as SVG: one template, one chart module."""
