# A Linux on x86-64 for macOS, Windows and arm64, as NVIDIA's wheel of Triton is for no other; docs/getting-started.md
# has the commands. The stage `tools` is what a checkout needs, and the development container's; `project` has it set up.

# hadolint ignore=DL3029
FROM --platform=linux/amd64 node:22.20.0-bookworm-slim AS tools
# Debian 12's own versions: a pinned one leaves its index with the next security fix.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install --yes --no-install-recommends \
        ca-certificates git libpython3.11 make python3 python3.11-venv \
    && rm -rf /var/lib/apt/lists/* \
    && install --directory --owner node --group node /tritonstack /tritonstack/.envs /tritonstack/.local /tritonstack/node_modules
ENV PATH=/tritonstack/.envs/main/bin:/tritonstack/node_modules/.bin:$PATH
WORKDIR /tritonstack
# hadolint ignore=DL3066
USER node
CMD ["bash"]

FROM tools AS project
COPY --chown=node:node . .
RUN make setup
