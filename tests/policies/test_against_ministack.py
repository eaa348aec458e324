"""The evaluator against MiniStack's (``ministack.core.iam_evaluator``), an independent one.

Moto's access control, the other one on PyPI, evaluates by its own list no conditions and no resource policies. Where
MiniStack differs from the IAM user guide, nothing is drawn: ``ForAnyValue`` with ``IfExists``; several values without a
set operator; wildcards in an ARN operator before its last part; ``Principal: *`` with a boundary or session policy;
empty values; values that are no number or date; policy variables. It evaluates no VPC endpoint's policy.
"""

from __future__ import annotations

import json
import subprocess
from collections import ChainMap, Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.environments import needs
from tritonstack.aws.iam_evaluation import Policies, Request, evaluate
from tritonstack.paths import environment_python

SCRIPT = """
import json, sys
from ministack.core.iam_evaluator import EvalContext, combine_resource_policy, evaluate, parse_policy_document

def parsed(statements):
    return [parse_policy_document({"Statement": statements})]

for line in sys.stdin:
    caller, request, policies = json.loads(line)
    context = EvalContext(
        principal_arn=caller["session"] or caller["principal"], principal_type="", principal_account="123456789012",
        action=request["action"], resource_arn=request["resource"], region="", service_context=request["context"],
    )
    limits = [parsed(policies[each]) for each in ("boundary", "session") if policies.get(each) is not None]
    found = evaluate(context, parsed(policies["identity"]), *limits)
    if "resource" in policies:
        document, must = {"Statement": policies["resource"]}, policies["resource_must_allow"]
        found = combine_resource_policy(found, context, document, None, must, limits)
    print(found.decision, flush=True)
"""
ROLE, USER, OTHER, ROOT = (f"arn:aws:iam::123456789012:{each}" for each in ("role/path/r", "user/u", "user/v", "root"))
SESSION = "arn:aws:sts::123456789012:assumed-role/r/s"
TOPIC, KEY = "arn:aws:sns:us-east-1:1:", "arn:aws:kms:us-east-1:123456789012:key/1"
ACTIONS, RESOURCES = ["s3:GetObject", "kms:Decrypt"], ["arn:aws:s3:::a/x", KEY]
WIDE = {
    "Action": [*ACTIONS, "s3:*", "S3:get*", "s3:?etObject", "*", "*"],
    "Resource": [*RESOURCES, "*", "*", "arn:aws:s3:::a/*", "arn:aws:s3:::A/*", "arn:aws:s3:::a/?", "*x"],
}
ORDERS = ["Equals", "NotEquals", "LessThan", "LessThanEquals", "GreaterThan", "GreaterThanEquals"]
TEXTS = ["Equals", "NotEquals", "EqualsIgnoreCase", "NotEqualsIgnoreCase", "Like", "NotLike"]
KINDS: list[tuple[list[str], list[str], list[str]]] = [
    ([f"String{name}" for name in TEXTS], ["a", "A", "ab"], ["a*", "?b"]),
    (["ArnEquals", "ArnLike", "ArnNotEquals", "ArnNotLike"], [f"{TOPIC}a", f"{TOPIC}ab"], [f"{TOPIC}a*"]),
    ([f"Numeric{name}" for name in ORDERS], ["1", "2", "2.0"], []),
    ([f"Date{name}" for name in ORDERS], ["2020-01-01T00:00:00Z", "2020-06-01", "1590969600"], []),
    (["Bool"], ["true", "false", "True"], []),
    (["BinaryEquals"], ["QQ==", "Qg=="], []),
    (["IpAddress", "NotIpAddress"], ["10.1.2.3", "2001:db8::1"], ["10.0.0.0/8", "2001:DB8::/32"]),
]
"""Operators of a kind of key, values of requests and policies, patterns of policies alone."""
ONE, MANY = [f"k:{kind}" for kind in range(len(KINDS))], [f"k:{kind}s" for kind in range(len(KINDS))]
TESTS = [("Null", key, [value]) for key in (*ONE, *MANY) for value in ("true", "false")]
CONTEXT: list[tuple[str, str | list[str]]] = []
for (names, values, patterns), one, many in zip(KINDS, ONE, MANY, strict=True):
    CONTEXT += [pair for each in values for pair in ((one, each), (many, [each]), (many, [each, values[0]]))]
    for name in names:
        TESTS += [(f"{name}{end}", one, values + patterns) for end in ("", "IfExists")]
        sets = (f"ForAnyValue:{name}", f"ForAllValues:{name}", f"ForAllValues:{name}IfExists")
        TESTS += [(each, many, values + patterns) for each in sets]

TEST = st.builds(
    lambda test, picks: (test[0], {test[1]: [test[2][each % len(test[2])] for each in picks]}),
    st.sampled_from(TESTS),
    st.lists(st.integers(0, 29), min_size=1, max_size=2),
)


def policy(*principals: str) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Statements, of a resource's policy with one of the principals each."""
    elements: list[list[dict[str, Any]]] = [[{"Effect": each} for each in ("Allow", "Allow", "Allow", "Deny")]]
    for name, plain in (("Action", ACTIONS), ("Resource", RESOURCES)):
        elements.append([{name: each} for each in WIDE[name]] + [{f"Not{name}": each} for each in plain])
    elements.append([{"Principal": {"AWS": [each]}} for each in principals] or [{}])
    conditions = st.lists(TEST, max_size=2).map(lambda tests: {"Condition": dict(tests)})
    drawn = st.tuples(*map(st.sampled_from, elements), conditions)
    return st.lists(drawn.map(lambda parts: dict(ChainMap(*parts))), min_size=1, max_size=3)


CALLERS = st.sampled_from([{"principal": ROLE, "session": SESSION}, {"principal": USER, "session": None}])
CONTEXTS = st.lists(st.sampled_from(CONTEXT), min_size=6, max_size=12).map(dict)
REQUESTS = st.fixed_dictionaries(
    {"action": st.sampled_from(ACTIONS), "resource": st.sampled_from(RESOURCES), "context": CONTEXTS}
)
OWN, MUST = {"identity": policy()}, {"resource_must_allow": st.booleans()}
LIMITED = {**OWN, "boundary": st.none() | policy(), "session": st.none() | policy()}
NAMED = (ROLE, USER, SESSION, OTHER, ROOT)
APPLYING = st.one_of(
    st.fixed_dictionaries(LIMITED),
    st.fixed_dictionaries({**LIMITED, **MUST, "resource": policy(*NAMED)}),
    st.fixed_dictionaries({**OWN, **MUST, "resource": policy(*NAMED, "*")}),
)


@needs("emulator")
def test_both_evaluators_decide_the_same() -> None:
    seen: Counter[str] = Counter()
    command = [str(environment_python("emulator")), "-c", SCRIPT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as ministack:
        assert ministack.stdin is not None and ministack.stdout is not None
        write, read = ministack.stdin.write, ministack.stdout.readline

        @settings(max_examples=1000)
        @given(CALLERS, REQUESTS, APPLYING)
        def decide(caller: Any, request: Any, policies: Any) -> None:
            write(f"{json.dumps([caller, request, policies])}\n")
            ours = evaluate(Request(**caller, **request), Policies(**policies))
            verdict = "Allow" if ours.allowed else "Deny" if ours.explicit_deny else "ImplicitDeny"
            assert verdict == read().strip()
            seen[verdict] += 1

        decide()
    assert min(seen.values()) > 50, seen
