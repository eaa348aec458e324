"""What an endpoint is to others: a name, an ARN, the right to call it, and its metrics. Made here or elsewhere."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_lib.endpoint_metrics import EndpointMetrics
from tritonstack.naming import NAME_PATTERN, outputs_parameter

if TYPE_CHECKING:
    from collections.abc import Collection


class CallableEndpoint(EndpointMetrics, Construct):
    """An endpoint that can be called and watched.

    Attributes:
        endpoint_name: its name.
        variant_name: its production variant's.
        multi_model: whether a caller picks the model by ``TargetModel``.
        models: the models that grants may name; None: not known here, so that any may be named.
        release_records: the SSM path of its release records; None: it has none.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        endpoint_name: str,
        variant_name: str,
        multi_model: bool,
        models: Collection[str] | None = None,
        release_records: str | None = None,
    ) -> None:
        """Describe an endpoint; nothing is made. Other apps import one by ``from_endpoint_attributes``.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            endpoint_name: its name.
            variant_name: its production variant's.
            multi_model: whether a caller picks the model by ``TargetModel``.
            models: the models that grants may name. Default: None, any.
            release_records: the SSM path of its release records, ``/tritonstack/<environment>/<endpoint>/``. Default:
                None, it has none.

        Raises:
            ValueError: ``release_records`` is no such path.
        """
        super().__init__(scope, construct_id)
        self.endpoint_name = endpoint_name
        self.variant_name = variant_name
        self.multi_model = multi_model
        self.models = None if models is None else frozenset(models)
        self.release_records = release_records
        self._records = None if release_records is None else _records_of(release_records)

    @staticmethod
    def from_endpoint_attributes(
        scope: Construct,
        construct_id: str,
        *,
        endpoint_name: str,
        variant_name: str,
        multi_model: bool = True,
        models: Collection[str] | None = None,
        release_records: str | None = None,
    ) -> CallableEndpoint:
        """An endpoint of another app or stack, in the account and region of this stack.

        Args:
            scope: the parent.
            construct_id: the id in the parent.
            endpoint_name: its name; may be known at deployment only (an SSM parameter).
            variant_name: its production variant's. Ours carry the instance type: ``ml.g4dn.xlarge`` is
                ``g4dn-xlarge``.
            multi_model: whether a caller picks the model by ``TargetModel``. Default: True.
            models: the models that grants may name. Default: None, any.
            release_records: the SSM path of its release records, as ``release_records`` of an environment's outputs
                says it (``/tritonstack/prod/digits/``): grants then also let callers name models without their
                archives. Default: None, callers name archives.
        """
        return CallableEndpoint(
            scope,
            construct_id,
            endpoint_name=endpoint_name,
            variant_name=variant_name,
            multi_model=multi_model,
            models=models,
            release_records=release_records,
        )

    @property
    def endpoint_arn(self) -> str:
        """The endpoint's ARN, from its name, so that a grant needs no deployed endpoint."""
        return cdk.Stack.of(self).format_arn(service="sagemaker", resource="endpoint", resource_name=self.endpoint_name)

    def grant_invoke(self, grantee: iam.IGrantable, *, models: Sequence[str] | None = None) -> iam.Grant:
        """Let someone call this endpoint.

        Where it has release records, also read those of the models, and the endpoint's mode beside them: that is all
        that ``tritonstack.client`` needs for ``endpoint/model``.

        Args:
            grantee: who may call.
            models: in multi-model mode, the models that may be called, whichever their current archive. Default: None,
                all of them.

        Returns:
            The grant.

        Raises:
            ValueError: ``models`` is empty, spells no model's name, names one that the endpoint does not serve, or
                names models at a single-model endpoint, where there is nothing to pick.
            TypeError: ``models`` is a string.
        """
        grant = iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["sagemaker:InvokeEndpoint"],
            resource_arns=[self.endpoint_arn],
            conditions=None if models is None else self._only(models),
        )
        if self._records is None:
            return grant
        records, mode = self._records
        # Without `models` a wildcard: a model that is added later has its record there, and may be called as well.
        names = [f"{records}{model}" for model in sorted(set(models or "*"))]
        reading = iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["ssm:GetParameter"],
            resource_arns=[
                cdk.Stack.of(self).format_arn(service="ssm", resource="parameter", resource_name=name.strip("/"))
                for name in (*names, mode)
            ],
        )
        return grant.combine(reading)

    def _only(self, models: Sequence[str]) -> dict[str, dict[str, list[str]]]:
        """The condition that leaves these models. The dot ends a name: `bert` does not cover `bert-large`."""
        if isinstance(models, str):
            raise TypeError(f"`models` is a list of names, not a string: [{models!r}]")
        if not self.multi_model:
            raise ValueError(f"endpoint {self.endpoint_name} serves a single model: grant it without `models`")
        if not models:
            raise ValueError("`models` is empty: name at least one model, or leave it out to grant all")
        for model in models:
            _check_name(model)
            if self.models is not None and model not in self.models:
                known = ", ".join(sorted(self.models))
                raise ValueError(f"endpoint {self.endpoint_name} has no model {model}: it has {known}")
        return {"StringLike": {"sagemaker:TargetModel": [f"{model}.*.tar.gz" for model in sorted(set(models))]}}


def _records_of(path: str) -> tuple[str, str]:
    """The path of release records, and the parameter beside it in which the endpoint's stack says its mode."""
    match = re.fullmatch(r"/tritonstack/([a-z0-9-]+)/([a-z0-9-]+)/", path)
    if match is None:
        raise ValueError(f"`release_records` is {path!r}; allowed: '/tritonstack/<environment>/<endpoint>/'")
    return path, outputs_parameter(environment=match[1], stack=f"serving-{match[2]}")


def _check_name(model: str) -> None:
    """A wildcard or a dot in a name would let in more models than one."""
    if re.fullmatch(NAME_PATTERN, model) is None:
        raise ValueError(f"{model!r} is no model's name: small letters, digits and hyphens, without wildcards")
