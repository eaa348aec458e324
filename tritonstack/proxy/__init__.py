"""A loopback KServe v2 server in front of signed InvokeEndpoint requests: Triton's own clients reach models by name."""
