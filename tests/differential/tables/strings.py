"""Strings and their escapes, white space, maps and lists in the text format."""

from __future__ import annotations

from tests.differential.bases import DOUBLE
from tests.differential.repository import Mutation, more, swap

STRINGS = (
    Mutation("message-of-an-unknown-field", DOUBLE, more("a { } "), "config", 'no field named "a"'),
    Mutation("form-feed-and-vertical-tab", DOUBLE, more("\f\v")),
    Mutation("tabs", DOUBLE, swap(" ", "\t", count=10)),
    Mutation("carriage-returns-alone", DOUBLE, swap("\n", "\r", count=2)),
    Mutation("backtick", DOUBLE, more("`"), "config", "Expected identifier"),
    Mutation("comment-before-a-value", DOUBLE, swap("max_batch_size: 8", "max_batch_size: # x\n 8")),
    Mutation("quotes-in-quotes", DOUBLE, swap('name: "x"', "name: 'a\"b'")),
    Mutation("escape-octal-and-a-digit", DOUBLE, swap('name: "x"', 'name: "\\1712"')),
    Mutation("escape-octal-too-large", DOUBLE, swap('name: "x"', 'name: "\\777"'), "config", "UTF-8"),
    Mutation("escape-hexadecimal-and-digits", DOUBLE, swap('name: "x"', 'name: "\\x041"')),
    Mutation("escape-of-a-surrogate-pair", DOUBLE, swap('name: "x"', 'name: "\\ud83d\\ude00"')),
    Mutation("escape-of-half-a-surrogate-pair", DOUBLE, swap('name: "x"', 'name: "\\ud83d"'), "config", "UTF-8"),
    Mutation("escape-too-short", DOUBLE, swap('name: "x"', 'name: "\\u12"'), "config", "Expected four hex digits"),
    Mutation("escapes-of-c", DOUBLE, swap('name: "x"', 'name: "\\?\\a"')),
    Mutation("escape-of-a-newline", DOUBLE, swap('name: "x"', 'name: "a\\\nb"'), "config", "Invalid escape sequence"),
    Mutation("list-of-messages-empty-with-a-colon", DOUBLE, more("parameters: [ ]")),
    Mutation("list-of-numbers-without-a-colon", DOUBLE, swap("dims: [ 4 ]", "dims [ 4 ]"), "config", 'Expected ":"'),
    Mutation("angle-brackets-after-a-colon", DOUBLE, more("dynamic_batching: <>")),
    Mutation("map-with-its-value-first", DOUBLE, more('parameters { value { string_value: "x" } key: "k" }')),
    Mutation("map-without-a-key", DOUBLE, more('parameters { value { string_value: "x" } }')),
    Mutation(
        "map-with-an-unknown-field", DOUBLE, more('parameters { key: "k" val { } }'), "config", 'no field named "val"'
    ),
    Mutation("any-of-a-url", DOUBLE, more("[type.googleapis.com/x] { }"), "config", 'Expected "]"'),
    Mutation("field-by-its-type", DOUBLE, more("ModelInput { }"), "config", 'no field named "ModelInput"'),
    Mutation("semicolon-in-a-list", DOUBLE, swap("[ 4 ]", "[ 4; 4 ]"), "config", 'Expected ","'),
    Mutation("comma-at-the-start", DOUBLE, swap('name: "double"', ', name: "double"'), "config", "Expected identifier"),
    Mutation("kind-by-a-negative-number", DOUBLE, swap("KIND_CPU", "-1"), "instance-kind", "has unexpected kind"),
    Mutation("kind-by-number", DOUBLE, swap("KIND_CPU", "2")),
    Mutation("kind-in-lower-case", DOUBLE, swap("KIND_CPU", "kind_cpu"), "config", "Unknown enumeration value"),
)
