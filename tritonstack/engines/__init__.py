"""TensorRT engines: which ones an environment needs, which machine builds each, and with which options.

The way of an engine, a file a station:

* ``order``: what an environment serves, and the archives that an endpoint needs in the bucket;
* ``plan``: which engines that takes, and the machine that builds each; ``trtexec``: with which options;
* ``export_step``, on any machine: export, lint, prove the ONNX graph, write the GPU step's job;
* ``gpu_step``, on a machine with the GPU, by ``runners``: ``engine_step.py`` builds the engine and runs it once;
* ``pack_step``, on any machine: compare the engine with the graph, pack the archive.

``prepare`` does this for orders, after ``prepare_plan`` has compared them with the bucket (``stored_archives``).
"""
