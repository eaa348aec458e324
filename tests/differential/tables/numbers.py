"""How numbers and truth values may be written."""

from __future__ import annotations

from tests.differential.bases import BATCHED, DOUBLE, OPTIONAL, RESHAPED, SEQUENCE
from tests.differential.repository import Mutation, swap

NUMBERS = (
    Mutation("dims-hexadecimal", DOUBLE, swap("[ 4 ]", "[ 0x4 ]")),
    Mutation("dims-minus-zero", DOUBLE, swap("[ 4 ]", "[ -0 ]"), "tensor-dims", "dimension must be integer >= 1"),
    Mutation("dims-minus-one-hexadecimal", DOUBLE, swap("[ 4 ]", "[ -0x1 ]")),
    Mutation("dims-whose-product-is-too-large", DOUBLE, swap("[ 4 ]", "[ 9223372036854775807, 4 ]")),
    Mutation(
        "reshape-whose-product-is-too-large",
        RESHAPED,
        swap(
            "[ 4, 3 ] reshape { shape: [ 2, 6 ]",
            "[ 4294967296, 4294967296 ] reshape { shape: [ 8589934592, 2147483648 ]",
        ),
    ),
    Mutation("reshape-left-empty", RESHAPED, swap("reshape { shape: [ ] }", "reshape { }")),
    Mutation(
        "truth-in-a-list", OPTIONAL, swap("optional: true", "optional: [ true ]"), "config", "Expected identifier"
    ),
    Mutation("truth-hexadecimal", OPTIONAL, swap("optional: true", "optional: 0x1")),
    Mutation("truth-as-two", OPTIONAL, swap("optional: true", "optional: 2"), "config", "Integer out of range"),
    Mutation("untruth-as-a-letter", OPTIONAL, swap("optional: true", "optional: f")),
    Mutation("fraction-with-an-f", SEQUENCE, swap("0.5", "0.5f")),
    Mutation("fraction-with-an-exponent", SEQUENCE, swap("0.5", "5e-1")),
    Mutation("fraction-with-a-leading-dot", SEQUENCE, swap("0.5", ".5")),
    Mutation("fraction-with-a-trailing-dot", SEQUENCE, swap("0.5", "1.")),
    Mutation("fraction-hexadecimal", SEQUENCE, swap("0.5", "0x1"), "config", "Expect a decimal number"),
    Mutation("fraction-octal", SEQUENCE, swap("0.5", "01"), "config", "Expect a decimal number"),
    Mutation(
        "fraction-minus-infinity",
        SEQUENCE,
        swap("0.5", "-Infinity"),
        "sequence-batching",
        "minimum slot utilization must be in range",
    ),
    Mutation("fraction-in-quotes", SEQUENCE, swap("0.5", '"0.5"'), "config", "Expected double"),
    Mutation(
        "number-octal-with-a-nine",
        DOUBLE,
        swap("8", "09"),
        "config",
        "Numbers starting with leading zero must be in octal",
    ),
    Mutation(
        "number-too-large-by-one",
        BATCHED,
        swap("max_queue_size: 10", "max_queue_size: 4294967296"),
        "config",
        "Integer out of range",
    ),
    Mutation("number-with-two-signs", DOUBLE, swap("8", "--8"), "config", "Expected integer"),
    Mutation(
        "number-with-an-underscore", DOUBLE, swap("8", "1_0"), "config", "Need space between number and identifier"
    ),
    Mutation("number-with-a-trailing-dot", DOUBLE, swap("8", "8."), "config", "Expected integer"),
    Mutation(
        "delay-the-largest",
        BATCHED,
        swap("max_queue_delay_microseconds: 100", "max_queue_delay_microseconds: 18446744073709551615"),
    ),
)
