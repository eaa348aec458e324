"""Streamed responses: from the container part by part, to the caller as an AWS event stream."""
