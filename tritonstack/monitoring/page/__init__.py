"""A dashboard's definition drawn as one self-contained page: read metrics, plot them as SVG, put them into HTML."""
