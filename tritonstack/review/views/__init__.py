"""A review as text: Markdown, the HTML page, and their sentences."""
