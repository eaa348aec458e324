"""ModelClient: arrays in, arrays out, for a model by its name."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError

from tritonstack.aws.session import AccountSession, Session, invalid_settings
from tritonstack.client.body import Array, Body, PayloadFormat, decode, encode
from tritonstack.client.errors import InvokeTarget, RequestRefusedError
from tritonstack.client.inputs import NO_MANIFEST, Image, Text, adapted_inputs, requested_outputs
from tritonstack.client.invocation import RETRY_SECONDS, Attempts, Clock, OnWait, RawResponse, call_endpoint
from tritonstack.client.latency_metric import Called, LatencyMetric
from tritonstack.client.manifest import ClientFiles, ManifestReader, TensorTable
from tritonstack.client.postprocessing import Meaning, meanings
from tritonstack.client.records import Record, arrays_from_records
from tritonstack.client.releases import ModelReference, ModelRelease, ReleaseRecords
from tritonstack.client.streaming import Parameter, StreamEvent, StreamingEndpoint, check_streams, generate_body
from tritonstack.errors import InputError, Problem, refuse
from tritonstack.naming import endpoint_name


@dataclass(frozen=True, kw_only=True)
class ModelResponse:
    """A model's response to one request.

    Attributes:
        outputs: output name → array, with the batch dimension where the model has one. BYTES are objects of ``bytes``.
        model_name: the model's name at Triton; in multi-model mode the archive's.
        model_version: Triton's model version.
        endpoint_name: the endpoint's name at SageMaker.
        target_model: the requested archive; None for a single-model endpoint.
        variant: the production variant that responded.
        milliseconds: of the successful attempt, from sending the request to having the whole response.
        total_milliseconds: of the whole call, with reading release records, failed attempts and pauses.
        attempts: number of InvokeEndpoint calls.
        bytes_sent: the request body's length.
        bytes_received: the response body's length.
        content_type: of the request body (JSON, or Triton's binary type).
        meanings: interpretation of the outputs by the model's recipe, one for each member of the batch; empty where
            it was not requested or the recipe has none.
    """

    outputs: Mapping[str, Array]
    model_name: str
    model_version: str
    endpoint_name: str
    target_model: str | None
    variant: str
    milliseconds: float
    total_milliseconds: float
    attempts: int
    bytes_sent: int
    bytes_received: int
    content_type: str
    meanings: tuple[Meaning, ...] = ()

    @property
    def meaning(self) -> Meaning | None:
        """Interpretation of the first member of the batch; None without one."""
        return self.meanings[0] if self.meanings else None


READ_TIMEOUT_SECONDS = 70
"""An invocation may take 60 s and AWS advises 10 s more, so that its own error arrives (SageMaker developer guide)."""

STREAM_TIMEOUT_SECONDS = 490
"""The same of a stream, which may take 8 minutes, and whose model may take them all for its first response."""


class ModelClient:
    """Calls the models of one environment. Thread safe: share one among all threads.

    A caller needs ``sagemaker:InvokeEndpoint`` (and ``…WithResponseStream`` to stream) and, to name models without
    their archives, ``ssm:GetParameter`` on the endpoint's release records and outputs (``ssm:GetParametersByPath`` on
    the environment's to leave out the endpoint). Tensor tables are read where the caller has ``s3:GetObject``.
    ``tritonstack docs clients`` has the policy.
    """

    def __init__(
        self,
        *,
        environment: str,
        session: Session | None = None,
        retry_seconds: float = RETRY_SECONDS,
        max_connections: int = 32,
        clock: Clock | None = None,
        on_wait: OnWait | None = None,
        cache_folder: Path | None = None,
        latency_metric: bool = False,
    ) -> None:
        """Make a client, without calling AWS.

        Args:
            environment: the environment's name (``prod``).
            session: makes the AWS clients. Default: a new ``boto3.Session``.
            retry_seconds: no attempt starts after this long; 0: none is retried.
            max_connections: concurrent requests at most.
            clock: time and randomness, for tests.
            on_wait: called at each pause before a retry, in the calling thread.
            cache_folder: of tokenizers and labels. Default: below TRITONSTACK_HOME, else in the user's cache folder.
            latency_metric: count the latency of every response, for :meth:`publish_latencies`.

        Raises:
            InputError: boto3 cannot use the process's AWS settings.
        """
        self.environment = environment
        self._session: Session = session or AccountSession(None)
        self._clients: dict[tuple[str, bool], Any] = {}
        self._lock = threading.Lock()
        self._max_connections = max_connections
        self._clock = clock or Clock()
        self._latencies = LatencyMetric(partial(self._client, "cloudwatch"), now=time.time) if latency_metric else None
        self._retry_seconds = retry_seconds
        self._on_wait = on_wait
        ssm, s3 = partial(self._client, "ssm"), partial(self._client, "s3")
        self._records = ReleaseRecords(environment=environment, ssm=ssm, now=self._clock.now)
        self._manifests = ManifestReader(environment=environment, ssm=ssm, s3=s3)
        self._files = ClientFiles(s3=s3, folder=cache_folder)

    def invoke(
        self,
        name: str,
        inputs: Mapping[str, Array],
        outputs: Sequence[str] | None = None,
        *,
        payload_format: PayloadFormat = "auto",
        variant: str | None = None,
    ) -> ModelResponse:
        """Call a model with arrays.

        Args:
            name: ``[endpoint/]model``, or ``endpoint/<archive>`` for one archive.
            inputs: input name → array, of the model's shapes (with the batch dimension, where it has one). FP16 is
                ``np.float16``, BF16 ``ml_dtypes.bfloat16``, BYTES objects of ``bytes`` or ``str``.
            outputs: requested outputs; None for all.
            payload_format: ``auto`` sends JSON only where it is small and loses nothing; ``json`` and ``binary`` apply
                to request and response.
            variant: the production variant to invoke, by its name in the settings or at SageMaker. Default:
                SageMaker picks one by weight.

        Raises:
            InputError: no such model or variant, an ambiguous name, or inputs that cannot be sent.
            InvokeError: no response; a subclass for each reason, with botocore's error as the cause.
            MalformedResponseError: the response is no inference response.
            ReleaseLookupError: the release records cannot be read.
        """
        started = self._clock.now()
        body = encode(inputs, outputs=outputs, payload_format=payload_format)
        target, raw = self._call(name, body, self._on_wait, variant=variant)
        decoded = decode(raw.content, raw.content_type)
        total_milliseconds = (self._clock.now() - started) * 1000
        self._count_latency(name, target, raw.variant, total_milliseconds)
        return ModelResponse(
            outputs=decoded.outputs,
            model_name=decoded.model_name,
            model_version=decoded.model_version,
            endpoint_name=target.endpoint_name,
            target_model=target.target_model,
            variant=raw.variant,
            milliseconds=raw.milliseconds,
            total_milliseconds=total_milliseconds,
            attempts=raw.attempts,
            bytes_sent=len(body.content),
            bytes_received=len(raw.content),
            content_type=body.content_type,
        )

    def ask(
        self,
        name: str,
        *,
        image: Image | list[Image] | None = None,
        text: Text | list[Text] | None = None,
        outputs: Sequence[str] | None = None,
        payload_format: PayloadFormat = "auto",
        variant: str | None = None,
    ) -> ModelResponse:
        """Call a model with images or texts, by its recipe's adapters; ``meanings`` interpret the response.

        Needs ``s3:GetObject`` on the manifests. Tokenizers and labels are fetched once and kept in the user's cache.

        Args:
            name: as for :meth:`invoke`.
            image: an image file, or its content; a list of them is a batch.
            text: the text itself, a pair of texts (question and context), or a Path to a file of it; a list of them is
                a batch, padded to the longest.
            outputs: requested outputs. Default: the one that the recipe interprets, else all.
            payload_format: as for :meth:`invoke`.
            variant: as for :meth:`invoke`.

        Raises:
            InputError: also for an invalid image or text, or a model without an adapter for it.
            ClientFileError: a client file of the recipe cannot be fetched.
            As :meth:`invoke`.
        """
        table = self.tensor_table(name)
        inputs = adapted_inputs(table, image=image, text=text, fetch=self.client_files)
        refuse([] if table is None else table.problems(inputs))
        wanted = requested_outputs(table, outputs)
        answer = self.invoke(name, inputs, wanted, payload_format=payload_format, variant=variant)
        return self.with_meaning(answer, table)

    def invoke_records(
        self,
        name: str,
        records: Sequence[Record] | Record,
        outputs: Sequence[str] | None = None,
        *,
        payload_format: PayloadFormat = "auto",
        variant: str | None = None,
    ) -> ModelResponse:
        """Call a model with records, a row of the batch each; datatypes and shapes come from its manifest.

        Needs ``s3:GetObject`` on the manifests.

        Args:
            name: as for :meth:`invoke`.
            records: input name → a value, or a nested list of values; or a list of such records.
            outputs: as for :meth:`invoke`.
            payload_format: as for :meth:`invoke`.
            variant: as for :meth:`invoke`.

        Raises:
            InputError: also for records that the model does not take, or a manifest that this caller cannot read.
            As :meth:`invoke`.
        """
        table = self.tensor_table(name)
        if table is None:
            raise InputError([Problem(field=name, found="a manifest that cannot be read", allowed=NO_MANIFEST)])
        rows = [records] if isinstance(records, Mapping) else list(records)
        inputs = arrays_from_records(rows, table, file="records")
        refuse(table.problems(inputs, outputs))
        return self.invoke(name, inputs, outputs, payload_format=payload_format, variant=variant)

    def stream(
        self,
        name: str,
        inputs: Mapping[str, Array],
        *,
        parameters: Mapping[str, Parameter] | None = None,
        variant: str | None = None,
    ) -> Iterator[StreamEvent]:
        """Call a model that streams; gives each of its responses as it comes.

        The name and the inputs are checked at once; the request is sent when the first event is asked for, and is sent
        again, as :meth:`invoke` does, until there is one. After it no more: an error then ends the stream. Closing the
        iterator closes the connection.

        Args:
            name: as for :meth:`invoke`, of a single-model endpoint with ``container.inference_type: generate_stream``.
            inputs: input name → array. Triton gets the elements in row-major order and makes the shape itself: fixed
                dimensions first, the last free one takes the rest, other free ones are 1.
            parameters: of the request, which the model reads as such (``max_tokens``).
            variant: as for :meth:`invoke`.

        Raises:
            InputError: also for a model whose endpoint does not stream, and for half precision, which JSON has not.
            ModelFailedError: before the first event as :meth:`invoke` has it; within the stream (status 200) an error
                event of the model.
            StreamBrokenError: the stream ended with an error after its first event.
            As :meth:`invoke`.
        """
        body = generate_body(inputs, parameters or {})
        reference = ModelReference.parse(name)
        if reference.digest is not None:
            allowed = "[endpoint/]model: an endpoint that streams serves its current archive alone"
            raise InputError([Problem(field="model's name", found=name, allowed=allowed)])
        target = self._target(reference, variant=variant, streamed=True)
        attempts = partial(Attempts, clock=self._clock, retry_seconds=self._retry_seconds, on_wait=self._on_wait)
        endpoint = StreamingEndpoint(self._client("sagemaker-runtime", streamed=True), target, attempts=attempts)
        return self._events(name, endpoint, body)

    def _events(self, name: str, endpoint: StreamingEndpoint, body: Body) -> Iterator[StreamEvent]:
        started = self._clock.now()
        yield from endpoint.events(body)
        self._count_latency(name, endpoint.target, endpoint.variant, (self._clock.now() - started) * 1000)

    def with_meaning(self, answer: ModelResponse, table: TensorTable | None) -> ModelResponse:
        """The response with its meanings, where the model's recipe interprets an output. Raises WorkFailedError."""
        kind = None if table is None else table.answers.kind
        if table is None or kind is None:
            return answer
        files = self.client_files(table, kind.files)
        return replace(answer, meanings=meanings(kind, answer.outputs, files, batched=table.max_batch_size > 0))

    def client_files(self, table: TensorTable, names: Sequence[str]) -> Mapping[str, Path]:
        """Paths of a model's client files, fetched where they are missing. Raises ClientFileError."""
        return self._files.paths(table.client_files, names)

    def send_raw(self, name: str, body: Body, *, on_wait: OnWait) -> RawResponse:
        """Call a model with an encoded body; the response without decoding.

        Raises what :meth:`invoke` raises, but for MalformedResponseError, and what ``on_wait`` raises.
        """
        started = self._clock.now()
        target, raw = self._call(name, body, on_wait)
        self._count_latency(name, target, raw.variant, (self._clock.now() - started) * 1000)
        return raw

    def publish_latencies(self) -> int:
        """Send CloudWatch the end-to-end latencies since the last time, by minute; returns how many they are.

        The metric is ``EndToEndLatency`` of ``tritonstack/client``, of the endpoint's variant and of the model: what a
        caller waits for, with network, retries and pauses, beside SageMaker's ModelLatency and OverheadLatency. Call
        it once a minute, and before the process ends. Needs ``cloudwatch:PutMetricData`` on that namespace
        (``grant_publish_latency``).

        Raises:
            InputError: the client was made without ``latency_metric=True``.
            WorkFailedError: CloudWatch does not take them.
        """
        if self._latencies is None:
            allowed = "ModelClient(…, latency_metric=True), which counts them"
            raise InputError([Problem(field="latency_metric", found="False", allowed=allowed)])
        return self._latencies.publish()

    def _count_latency(self, name: str, target: InvokeTarget, variant: str, milliseconds: float) -> None:
        if self._latencies is not None:
            model = ModelReference.parse(name).model
            self._latencies.add(Called(target.endpoint_name, variant, model), milliseconds)

    def manifest(self, name: str) -> Mapping[str, Any] | None:
        """The manifest of a model's archive, or None where this caller cannot read it.

        Raises what :meth:`resolve` raises.
        """
        return self._manifests.manifest(self.resolve(name))

    def resolve(self, name: str) -> ModelRelease:
        """The current archive of a model. Raises what :meth:`invoke` raises for its name."""
        return self._records.resolve(ModelReference.parse(name))

    def variants(self, name: str) -> tuple[str, ...]:
        """Names at SageMaker of the production variants of a model's endpoint. Raises as :meth:`resolve`."""
        return self._records.variants(self.resolve(name).endpoint)

    def target(self, name: str) -> InvokeTarget:
        """How InvokeEndpoint names a model. Raises what :meth:`invoke` raises for its name."""
        reference = ModelReference.parse(name)
        return self._target(reference, streamed=reference.digest is None and self.streams(name))

    def streams(self, name: str) -> bool:
        """Whether a model's responses are streams (:meth:`stream`). Raises what :meth:`invoke` raises for its name."""
        return self._records.streams(self._records.resolve(ModelReference.parse(name)).endpoint)

    def releases(self) -> tuple[ModelRelease, ...]:
        """Every current release of the environment. Raises ReleaseLookupError."""
        return self._records.all()

    def tensor_table(self, name: str) -> TensorTable | None:
        """A model's inputs and outputs, or None where this caller cannot read its manifest.

        Raises what :meth:`invoke` raises for its name.
        """
        return self._manifests.table(self.resolve(name))

    def _call(
        self, name: str, body: Body, on_wait: OnWait | None, *, variant: str | None = None
    ) -> tuple[InvokeTarget, RawResponse]:
        """Call; after a ValidationError, retry once if the release record or the endpoint's outputs have changed."""
        reference = ModelReference.parse(name)
        target = self._target(reference, variant=variant)
        resolved = self._clock.now()
        call = partial(
            call_endpoint,
            self._client("sagemaker-runtime"),
            body=body,
            clock=self._clock,
            retry_seconds=self._retry_seconds,
            on_wait=on_wait,
        )
        try:
            return target, call(target)
        except RequestRefusedError as error:
            if error.code != "ValidationError" or reference.digest is not None:
                raise
            other = self._target(reference, variant=variant, loaded_since=resolved)
            if other == target:
                raise
        return other, call(other)

    def _target(
        self,
        reference: ModelReference,
        *,
        variant: str | None = None,
        loaded_since: float = float("-inf"),
        streamed: bool = False,
    ) -> InvokeTarget:
        """How InvokeEndpoint names a model. Multi-model endpoints alone serve an archive by its name.

        Raises InputError: also where a stream is wanted (``streamed``) of an endpoint that has none, or no stream of
        one that has no other responses.
        """
        release = self._records.resolve(reference, loaded_since=loaded_since)
        if streamed or reference.digest is None:
            streams = self._records.streams(release.endpoint, loaded_since=loaded_since)
            check_streams(endpoint=release.endpoint, streams=streams, wanted=streamed)
        multi_model = reference.digest is not None or self._records.is_multi_model(
            release.endpoint, loaded_since=loaded_since
        )
        name = endpoint_name(environment=self.environment, endpoint=release.endpoint)
        if variant is not None:
            variant = self._records.variant(release.endpoint, variant, loaded_since=loaded_since)
        return InvokeTarget(
            endpoint_name=name, target_model=str(release.archive) if multi_model else None, variant=variant
        )

    def _client(self, service: str, *, streamed: bool = False) -> Any:
        """The one client of a service, made on first use: clients are thread safe, sessions are not."""
        with self._lock:
            if (service, streamed) not in self._clients:
                try:
                    made = self._session.client(service, config=self._config(service, streamed=streamed))
                except BotoCoreError as error:
                    raise invalid_settings(error) from error
                self._clients[service, streamed] = made
            return self._clients[service, streamed]

    def _config(self, service: str, *, streamed: bool) -> Config:
        if service != "sagemaker-runtime":
            return Config(retries={"total_max_attempts": 4, "mode": "standard"}, connect_timeout=5, read_timeout=20)
        return Config(
            retries={"total_max_attempts": 1, "mode": "standard"},  # ours are the only ones: they must not multiply
            connect_timeout=5,
            read_timeout=STREAM_TIMEOUT_SECONDS if streamed else READ_TIMEOUT_SECONDS,
            max_pool_connections=self._max_connections,
            tcp_keepalive=True,
        )
