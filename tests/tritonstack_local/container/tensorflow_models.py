"""Writes the GraphDefs that the tests serve: ``python tensorflow_models.py FOLDER``, with TensorFlow's interpreter."""

# mypy: disable-error-code="import-not-found,import-untyped"
# TensorFlow is in the environment that this runs in, not in the one that checks types.

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import tensorflow as tf

V1 = tf.compat.v1


def scale() -> None:
    """x [n, 3], factor [n, 1] → ``Model/product`` [n, 3]; ``Model/rows`` [n, 1], the number of rows of the run."""
    x, factor = V1.placeholder(tf.float32, (None, 3), "x"), V1.placeholder(tf.float32, (None, 1), "factor")
    tf.multiply(x, factor, "Model/product")
    rows = tf.shape(x, out_type=tf.int64)[:1]
    tf.broadcast_to(rows, tf.stack([rows[0], tf.constant(1, tf.int64)]), "Model/rows")


def failing() -> None:
    """x [n, 3] → ``product`` [n, 3]; fails where a value is negative."""
    x = V1.placeholder(tf.float32, (None, 3), "x")
    check = tf.debugging.Assert(tf.reduce_min(x) >= 0, ["a value is negative"])
    with tf.control_dependencies([check]):
        tf.multiply(x, 2.0, "product")


if __name__ == "__main__":
    for build in (scale, failing):
        with tf.Graph().as_default() as graph:
            build()
        path = Path(sys.argv[1], build.__name__, "model.graphdef")
        path.parent.mkdir(parents=True)
        path.write_bytes(graph.as_graph_def().SerializeToString())
