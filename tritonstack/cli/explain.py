"""``tritonstack explain``."""

from __future__ import annotations

import difflib

import click
from rich.console import Console
from rich.markdown import Markdown

from tritonstack.errors import InputError, Problem
from tritonstack.models.lint.registry import CATEGORIES, Rule, base_page, page_of, rule, rule_ids, rules


@click.command("explain")
@click.argument("rule_id", metavar="RULE", required=False)
def command(*, rule_id: str | None) -> None:
    """Explain a RULE of `tritonstack lint`: what and why, its source, a bad example and a good one. Without: a list."""
    if rule_id is None:
        _list()
    elif rule_id not in rule_ids():
        near = difflib.get_close_matches(rule_id, rule_ids(), n=5, cutoff=0.5)
        near += [each for each in rule_ids() if rule_id in each and each not in near]
        allowed = ", ".join(near) or "a rule of the list that `tritonstack explain` prints"
        raise InputError([Problem(field="RULE", found=rule_id, allowed=allowed)])
    else:
        _print(page(rule(rule_id)))


def page(explained: Rule) -> str:
    """A rule's page as Markdown, its base repository included."""
    parts = [
        f"# {explained.id} ({explained.level}, {explained.category})",
        f"**{explained.title}**",
        f"_{explained.category}: {CATEGORIES[explained.category]}_",
        page_of(explained.id),
    ]
    if explained.endpoint:
        fields = ", ".join(f"{name}: {value}" for name, value in explained.endpoint.items())
        parts.append(f"Both are checked for an endpoint with {fields}.")
    if explained.base:
        parts += ["## What both change", base_page(explained.base)]
    if explained.sources:
        parts += ["## Source", "\n".join(f"- {source}" for source in explained.sources)]
    return "\n\n".join(parts) + "\n"


def _list() -> None:
    width = max(len(each) for each in rule_ids())
    category = ""
    for each in rules():
        if each.category != category:
            category = each.category
            click.echo(f"\n{category}: {CATEGORIES[each.category]}")
        click.echo(f"  {each.id:<{width}}  {each.level:<7}  {each.title}")


def _print(text: str) -> None:
    """Drawn in a terminal, as it is anywhere else."""
    console = Console()
    if console.is_terminal:
        console.print(Markdown(text))
    else:
        click.echo(text, nl=False)
