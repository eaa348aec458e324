"""Builds archives into the bucket before they are served: the orders of endpoints, and their execution.

The way of an archive with an engine, a file a station:

* ``build_order``: the archives that an endpoint needs in the bucket; ``deployed_builds``: all that a deployment builds;
* ``export_step``, on any machine: export, lint, prove the ONNX graph, write the GPU step's job;
* ``gpu_step``, on a machine with the GPU, by ``codebuild_runner`` or
  ``processing_runner``: the engine is built there and run once;
* ``pack_step``, on any machine: compare the engine with the graph, pack the archive.

``prepare`` does this for orders, after ``needed_work`` has compared them with the bucket (``stored_archives``).
"""
