"""Readers of what anybody may have made: tar and zip archives, folders of files, JSON and Python programs as text."""
