"""Archives by their layout, and what each mode makes of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.differential.bases import CHAIN, DOUBLE
from tests.differential.repository import Mutation, drop, folder, move, nothing, write

_NO_VERSION = "at least one version must be available"
_SEVERAL = "More than one directory in the model repository and no SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"
_SECOND = (
    write("other/config.pbtxt", DOUBLE.files["double/config.pbtxt"].replace("double", "other")),
    write("other/1/model.py", DOUBLE.files["double/1/model.py"]),
)


@dataclass(frozen=True)
class Mode:
    """What becomes of an archive in one mode.

    Attributes:
        says: what the container says instead of serving it; empty where it serves it; None where SageMaker's front end
            takes the directory that the file system names last, so that the container is not asked.
        rule: the linter's rule that refuses it for an endpoint of this mode; empty where it accepts it. It may be
            stricter than the container: what is served by luck is refused.
    """

    says: str | None = ""
    rule: str = ""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """One archive: what is packed, without a default model's name, and what each mode makes of it."""

    packed: Mutation
    multi_model: Mode = field(default_factory=Mode)
    single_model: Mode = field(default_factory=Mode)


LAYOUTS = (
    Layout(packed=Mutation("one-model", DOUBLE, nothing)),
    Layout(packed=Mutation("file-beside-the-model", DOUBLE, write("README.md", "x"))),
    Layout(packed=Mutation("one-ensemble", CHAIN, nothing), single_model=Mode(_SEVERAL, "default-model")),
    Layout(
        packed=Mutation(
            "configuration-at-the-root",
            DOUBLE,
            (move("double/config.pbtxt", "config.pbtxt"), move("double/1", "1")),
        ),
        multi_model=Mode("", "config-at-root"),
        single_model=Mode("config.pbtxt lies at the archive's root", "config-at-root"),
    ),
    Layout(
        packed=Mutation("one-folder-too-deep", DOUBLE, move("double", "models/double")),
        multi_model=Mode(_NO_VERSION, "no-model"),
        single_model=Mode("Could not determine backend for model 'models'", "no-model"),
    ),
    Layout(
        packed=Mutation("no-folder", DOUBLE, (drop("double"), write("model.py", ""))),
        multi_model=Mode(_NO_VERSION, "no-model"),
        single_model=Mode("No model found in model repository", "no-model"),
    ),
    Layout(
        packed=Mutation("nothing", DOUBLE, drop("double")),
        multi_model=Mode(_NO_VERSION, "no-model"),
        single_model=Mode("No model found in model repository", "no-model"),
    ),
    Layout(
        packed=Mutation("configuration-missing", DOUBLE, drop("double/config.pbtxt")),
        multi_model=Mode("", ""),
        single_model=Mode("", ""),
    ),
    Layout(
        packed=Mutation("folder-beside-the-model", DOUBLE, folder("other")),
        multi_model=Mode(None, "directory-without-config"),
        single_model=Mode(_SEVERAL, "directory-without-config"),
    ),
    Layout(
        packed=Mutation("two-models", DOUBLE, _SECOND),
        multi_model=Mode(None, "several-models-no-ensemble"),
        single_model=Mode(_SEVERAL, "default-model"),
    ),
    Layout(
        packed=Mutation("checkpoints-of-a-notebook", DOUBLE, folder(".ipynb_checkpoints")),
        multi_model=Mode(None, "notebook-checkpoints"),
        single_model=Mode(_SEVERAL, "notebook-checkpoints"),
    ),
)
