"""TensorRT engines: which ones an environment needs, which machine builds each, and with which options."""
