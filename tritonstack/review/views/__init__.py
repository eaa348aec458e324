"""A review as text: Markdown, the HTML page, annotations of a pull request, and their sentences."""
