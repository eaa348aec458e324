"""The runtime's account of itself: endpoints, fleets, loaded models, hit ratios, latencies, last errors."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

from tritonstack_local.runtime.cached_model import CachedModel
from tritonstack_local.runtime.endpoint import Endpoint
from tritonstack_local.runtime.fleet import Fleet
from tritonstack_local.runtime.metrics import NOT_WRITTEN
from tritonstack_local.runtime.reconcile import Reconciler


def runtime_status(reconciler: Reconciler) -> dict[str, Any]:
    """What ``tritonstack local status`` shows. Times are ISO 8601, durations seconds unless the name says else."""
    return {
        "local_aws": reconciler.unreachable or "answers",
        "metrics_not_written": NOT_WRITTEN,
        "endpoints": [_endpoint(endpoint) for _, endpoint in sorted(reconciler.endpoints.items())],
    }


def _endpoint(endpoint: Endpoint) -> dict[str, Any]:
    described = endpoint.described
    return {
        "name": endpoint.name,
        "status": described.status,
        "endpoint_config": described.config,
        "pending_endpoint_config": described.pending,
        "last_failure": endpoint.last_failure,
        "fleets": [_fleet(fleet, share=endpoint.share(fleet)) for fleet in endpoint.fleets],
    }


def _fleet(fleet: Fleet, *, share: float) -> dict[str, Any]:
    container, model, metrics = fleet.container, fleet.config.model, fleet.metrics
    return {
        "endpoint_config": fleet.config.name,
        "variant": fleet.config.variant,
        "instance_type": fleet.config.instance_type,
        "state": fleet.condition,
        "serving": share > 0,
        "share": round(share, 4),
        "mode": "multi-model" if model.multi_model else "single-model",
        "model_data": str(model.data),
        "image_asked_for": model.image,
        "release_asked_for": fleet.release,
        "server_version": fleet.server_version,
        "isolation": container.isolation if container else None,
        "notes": list(container.notes) if container else [],
        "stand_ins": list(fleet.stand_ins),
        "pid": container.pid if container else None,
        "restarts": fleet.restarts,
        "log": str(container.log_path) if container else None,
        "log_group": fleet.address.log_group,
        "log_stream": fleet.address.log_stream,
        "max_loaded_models": fleet.models.limit,
        "in_flight": fleet.in_flight,
        "requests": metrics.requests,
        "errors": metrics.errors,
        "loads": metrics.loads,
        "unloads": metrics.unloads,
        "hit_ratio": round(metrics.hits / metrics.lookups, 4) if metrics.lookups else None,
        "model_latency_ms": metrics.recent(),
        "last_errors": [{"at": _iso(at), "error": text} for at, text in fleet.last_errors],
        "models": [_model(one) for one in sorted(fleet.models.models.values(), key=lambda one: one.target)],
    }


def _model(model: CachedModel) -> dict[str, Any]:
    return {
        "target_model": model.target,
        "hash": model.hash,
        "state": model.state.value,
        "in_flight": model.in_flight,
        "loads": model.loads,
        "hits": model.hits,
        "last_used": _iso(time.time() - (time.monotonic() - model.last_used)),
    }


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat(timespec="milliseconds")
