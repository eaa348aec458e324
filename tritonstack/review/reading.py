"""Values of a stack as they are compared and shown: what is known of a reference is put in its place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from tritonstack.review.intrinsics import readable
from tritonstack.review.snapshot import Json, StackSnapshot

_REFERENCE = re.compile(r"\$\{([^}]*)\}")
_WHOLE = re.compile(r"\$\{([A-Za-z0-9]+)(?:\.[A-Za-z0-9.]+)?\}")
_ARNS = {
    ("AWS::S3::Bucket", ".Arn"): "arn:{partition}:s3:::${{{name}}}",
    ("AWS::Logs::LogGroup", ".Arn"): "arn:{partition}:logs:{region}:{account}:log-group:${{{name}}}:*",
    ("AWS::Lambda::Function", ".Arn"): "arn:{partition}:lambda:{region}:{account}:function:${{{name}}}",
    ("AWS::SQS::Queue", ".Arn"): "arn:{partition}:sqs:{region}:{account}:${{{name}.QueueName}}",
    ("AWS::SNS::Topic", ""): "arn:{partition}:sns:{region}:{account}:${{{name}.TopicName}}",
    ("AWS::KMS::Key", ".Arn"): "arn:{partition}:kms:{region}:{account}:key/${{{name}}}",
}
"""Type and attribute → the ARN that it reads, as the service authorization reference writes it."""


@dataclass(frozen=True)
class Reading:
    """How values of one stack read."""

    stack: StackSnapshot

    @property
    def partition(self) -> str:
        """``aws``, or that of the region."""
        region = self.stack.region or ""
        return "aws-cn" if region.startswith("cn-") else "aws-us-gov" if region.startswith("us-gov-") else "aws"

    @property
    def account(self) -> str:
        """The stack's account, or the pseudo parameter."""
        return self.stack.account or "${AWS::AccountId}"

    @cached_property
    def replaced(self) -> dict[str, str]:
        """Reference → what it is known to be: pseudo parameters, and parameters by what they read."""
        known = {"${AWS::Partition}": self.partition, "${AWS::StackName}": self.stack.stack_name}
        if self.stack.account is not None:
            known["${AWS::AccountId}"] = self.stack.account
        if self.stack.region is not None:
            known["${AWS::Region}"] = self.stack.region
            china = self.partition == "aws-cn"
            known["${AWS::URLSuffix}"] = "amazonaws.com.cn" if china else "amazonaws.com"
        for name, parameter in self.stack.template.get("Parameters", {}).items():
            if "Default" in parameter:
                default = str(parameter["Default"])
                stored = str(parameter.get("Type", "")).startswith("AWS::SSM::Parameter::Value")
                known[f"${{{name}}}"] = f"${{ssm:{default}}}" if stored else default
        return known

    def shown(self, value: Json) -> str:
        """A value for people: ``${Bucket.Arn}/x``, with known references in place."""
        text = readable(value)
        return _REFERENCE.sub(lambda found: self.replaced.get(found[0], found[0]), text) if "${" in text else text

    def canonical(self, value: Json) -> str:
        """A value to compare: ARNs of the stack's resources are written out as far as they are known."""
        text = self.shown(value)
        return _REFERENCE.sub(self._written_out, text) if "${" in text else text

    def logical_id(self, value: Json) -> str | None:
        """The resource that a value names by ``Ref`` or an attribute; None where it is no reference to one here."""
        found = _WHOLE.fullmatch(readable(value))
        return found[1] if found and found[1] in self.stack.resources else None

    def _written_out(self, found: re.Match[str]) -> str:
        name, dot, attribute = found[1].partition(".")
        resource = self.stack.resources.get(name)
        form = _ARNS.get((resource.type, dot + attribute)) if resource is not None else None
        if form is None:
            return found[0]
        region = self.stack.region or "${AWS::Region}"
        return form.format(partition=self.partition, region=region, account=self.account, name=name)
