"""Readers of untrusted files: tar and zip archives, folders of files, JSON and Python programs as text."""
